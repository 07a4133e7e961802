/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a compiler calls at each access with -fsanitize=thread, in place of
 * ThreadSanitizer's own: gcc/tsan.cc and llvm's tsan_interface.h list them. Outside of a run they
 * do the access and nothing else. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/interleavings/explore.h"
#include "tests/interleavings/memory_model.h"

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

/* ---- plain accesses ---- */

static void plain(const void *p, size_t bytes, bool write)
{
    if (ex_active()) {
        mm_plain(p, bytes, write);
    }
}

#define PLAIN(bytes)                                                                               \
    void __tsan_read##bytes(void *p);                                                              \
    void __tsan_write##bytes(void *p);                                                             \
    void __tsan_unaligned_read##bytes(void *p);                                                    \
    void __tsan_unaligned_write##bytes(void *p);                                                   \
    void __tsan_read##bytes(void *p)                                                               \
    {                                                                                              \
        plain(p, bytes, false);                                                                    \
    }                                                                                              \
    void __tsan_write##bytes(void *p)                                                              \
    {                                                                                              \
        plain(p, bytes, true);                                                                     \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(void *p)                                                     \
    {                                                                                              \
        plain(p, bytes, false);                                                                    \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(void *p)                                                    \
    {                                                                                              \
        plain(p, bytes, true);                                                                     \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes);

void __tsan_read_range(void *p, size_t bytes)
{
    plain(p, bytes, false);
}

void __tsan_write_range(void *p, size_t bytes)
{
    plain(p, bytes, true);
}

/* clang calls these in place of libc's */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes);

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    return __builtin_memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
    return __builtin_memset(to, value, bytes);
}

/* ---- atomic accesses ---- */

#define MODIFY(bits, name, result)                                                                 \
    uint##bits##_t __tsan_atomic##bits##_##name(_Atomic uint##bits##_t *p, uint##bits##_t v,       \
                                                int order);                                        \
    uint##bits##_t __tsan_atomic##bits##_##name(_Atomic uint##bits##_t *p, uint##bits##_t v,       \
                                                int order)                                         \
    {                                                                                              \
        uint##bits##_t before;                                                                     \
                                                                                                   \
        if (ex_active()) {                                                                         \
            ex_point(false);                                                                       \
            before = (uint##bits##_t)mm_newest(p, sizeof(*p), order);                              \
            mm_store_after(p, sizeof(*p), (uint##bits##_t)(result), order);                        \
            return before;                                                                         \
        }                                                                                          \
        before = atomic_load(p);                                                                   \
        atomic_store(p, (uint##bits##_t)(result));                                                 \
        return before;                                                                             \
    }

#define ATOMIC(bits)                                                                               \
    uint##bits##_t __tsan_atomic##bits##_load(const _Atomic uint##bits##_t *p, int order);         \
    void __tsan_atomic##bits##_store(_Atomic uint##bits##_t *p, uint##bits##_t v, int order);      \
    int __tsan_atomic##bits##_compare_exchange_strong(_Atomic uint##bits##_t *p,                   \
                                                      uint##bits##_t *expected, uint##bits##_t v,  \
                                                      int order, int failure);                     \
    int __tsan_atomic##bits##_compare_exchange_weak(_Atomic uint##bits##_t *p,                     \
                                                    uint##bits##_t *expected, uint##bits##_t v,    \
                                                    int order, int failure);                       \
                                                                                                   \
    uint##bits##_t __tsan_atomic##bits##_load(const _Atomic uint##bits##_t *p, int order)          \
    {                                                                                              \
        if (!ex_active()) {                                                                        \
            return atomic_load(p);                                                                 \
        }                                                                                          \
        ex_point(true);                                                                            \
        return (uint##bits##_t)mm_load(p, sizeof(*p), order);                                      \
    }                                                                                              \
    void __tsan_atomic##bits##_store(_Atomic uint##bits##_t *p, uint##bits##_t v, int order)       \
    {                                                                                              \
        if (!ex_active()) {                                                                        \
            atomic_store(p, v);                                                                    \
            return;                                                                                \
        }                                                                                          \
        ex_point(false);                                                                           \
        mm_store(p, sizeof(*p), v, order);                                                         \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_strong(_Atomic uint##bits##_t *p,                   \
                                                      uint##bits##_t *expected, uint##bits##_t v,  \
                                                      int order, int failure)                      \
    {                                                                                              \
        uint##bits##_t before;                                                                     \
                                                                                                   \
        if (!ex_active()) {                                                                        \
            return atomic_compare_exchange_strong(p, expected, v);                                 \
        }                                                                                          \
        ex_point(false);                                                                           \
        before = (uint##bits##_t)mm_newest(p, sizeof(*p), order);                                  \
        (void)failure;                                                                             \
        if (before != *expected) {                                                                 \
            *expected = before;                                                                    \
            return 0;                                                                              \
        }                                                                                          \
        mm_store_after(p, sizeof(*p), v, order);                                                   \
        return 1;                                                                                  \
    }                                                                                              \
    int __tsan_atomic##bits##_compare_exchange_weak(_Atomic uint##bits##_t *p,                     \
                                                    uint##bits##_t *expected, uint##bits##_t v,    \
                                                    int order, int failure)                        \
    {                                                                                              \
        return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, order, failure);      \
    }                                                                                              \
    MODIFY(bits, exchange, v)                                                                      \
    MODIFY(bits, fetch_add, before + v)                                                            \
    MODIFY(bits, fetch_sub, before - v)                                                            \
    MODIFY(bits, fetch_and, before &v)                                                             \
    MODIFY(bits, fetch_or, before | v)                                                             \
    MODIFY(bits, fetch_xor, before ^ v)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    if (ex_active()) {
        ex_point(false);
        mm_fence(order);
    } else {
        atomic_thread_fence(memory_order_seq_cst);
    }
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
