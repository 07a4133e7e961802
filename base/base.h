/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base.h - the few helpers that every folder needs, and the system's headers that most files use
 *
 * Header-only for good: what needs a .c file is a file of its own beside it. Nothing here keeps
 * state, allocates or blocks. Threads: any.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BASE_CACHE_LINE_BYTES 64u
#define BASE_NS_PER_US 1000ull
#define BASE_NS_PER_MS 1000000ull
#define BASE_NS_PER_S 1000000000ull

#define base_array_count(a) (sizeof(a) / sizeof((a)[0]))
/* Unique names inside the statement expression, so that calls may nest. */
#define base_paste_(a, b) a##b
#define base_name_(a, b) base_paste_(a, b)
#define base_pick_(x, op, y, a, b)                                                                 \
    ({                                                                                             \
        __typeof__(a) x = (a);                                                                     \
        __typeof__(b) y = (b);                                                                     \
        x op y ? x : y;                                                                            \
    })
#define base_min(a, b)                                                                             \
    base_pick_(base_name_(base_x_, __COUNTER__), <, base_name_(base_y_, __COUNTER__), a, b)
#define base_max(a, b)                                                                             \
    base_pick_(base_name_(base_x_, __COUNTER__), >, base_name_(base_y_, __COUNTER__), a, b)
#define base_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs `fn(&variable)` when the variable leaves its scope. */
#define base_cleanup(fn) __attribute__((cleanup(fn), unused))
/* Returns an owned pointer and sets the variable to NULL, so that its cleanup attribute frees
 * nothing. */
#define base_take(ptr)                                                                             \
    ({                                                                                             \
        __typeof__(ptr) *base_p_ = &(ptr);                                                         \
        __typeof__(ptr) base_v_ = *base_p_;                                                        \
        *base_p_ = NULL;                                                                           \
        base_v_;                                                                                   \
    })

/** base_plural() - what ends the noun behind a count, as in "%zu frame%s". */
#define base_plural(n) ((n) == 1 ? "" : "s")

/* Compiles one function with these optimisation options; clang has no such attribute. */
#ifdef __clang__
#define base_optimize(...)
#else
#define base_optimize(...) __attribute__((optimize(__VA_ARGS__)))
#endif

/** base_ends_with() - Return: @text is longer than @end, and ends with it. */
static inline bool base_ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);

    return a > b && strcmp(text + a - b, end) == 0;
}

/** base_append() - adds to the text in @ret, which has @bytes. Return: false: it did not fit; then
 * it is cut off, and so is all that is added later. base_vappend() - the same. */
__attribute__((format(printf, 3, 0))) static inline bool
base_vappend(char *ret, size_t bytes, const char *format, va_list args)
{
    size_t used = strlen(ret);
    int n = vsnprintf(ret + used, bytes - used, format, args);

    return n >= 0 && (size_t)n < bytes - used;
}
__attribute__((format(printf, 3, 4))) static inline bool base_append(char *ret, size_t bytes,
                                                                     const char *format, ...)
{
    va_list args;
    bool fits;

    va_start(args, format);
    fits = base_vappend(ret, bytes, format, args);
    va_end(args);
    return fits;
}

/** base_is_missing() - Return: nothing has this name. What cannot be looked at, or a link that
 * leads nowhere, is not missing: who opens it learns why. */
static inline bool base_is_missing(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0 && errno == ENOENT;
}

static inline void base_free_ptr(void *ptr_to_ptr)
{
    void **p = ptr_to_ptr;
    free(*p);
    *p = NULL;
}
#define base_autofree base_cleanup(base_free_ptr)

static inline void base_close_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
        *fd = -1;
    }
}
#define base_autoclose base_cleanup(base_close_fd)

/** base_take_fd() - base_take() of a descriptor: leaves -1. */
static inline int base_take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/** base_read_all() - reads until @bytes are there or the file ends, however often it is
 * interrupted. Return: bytes, fewer only at the end of the file; -errno. */
static inline ssize_t base_read_all(int fd, void *to, size_t bytes)
{
    size_t have = 0;
    ssize_t n = 1;

    while (have < bytes && n != 0) {
        n = read(fd, (char *)to + have, bytes - have);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

/** base_mul() / base_add() - multiply or add sizes. Return: true with *ret set; false on
 * overflow. */
static inline bool base_mul(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}
static inline bool base_add(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

/**
 * base_room_for() - makes room for @count items in an array that grows
 * @array: address of the owned pointer to it  @item: bytes of an item  @count: items in all
 * @room: items that there is room for; at least doubled where that is fewer than @count
 * Return: false: no memory, and nothing has changed.
 */
static inline bool base_room_for(void *array, size_t item, size_t count, size_t *room)
{
    size_t more = 2 * *room + 2;
    void *grown;

    if (count <= *room) {
        return true;
    }
    more = more < count ? count : more;
    memcpy(&grown, array, sizeof(grown));
    grown = reallocarray(grown, more, item);
    if (grown) {
        memcpy(array, &grown, sizeof(grown));
        *room = more;
    }
    return grown != NULL;
}

/** base_room() - the same for one item more than the @count that there are. */
static inline bool base_room(void *array, size_t item, size_t count, size_t *room)
{
    return base_room_for(array, item, count + 1, room);
}

/** base_align_up() - rounds @n up to a multiple of @align, a power of two. @n: at most SIZE_MAX -
 * @align. */
static inline size_t base_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/** base_by_size() - for qsort() of doubles, none of them NaN: the smallest first. */
static inline int base_by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/** base_splitmix64() - pseudo-random numbers (Steele, Lea, Flood 2014), the same on every machine;
 * not for secrets. @state: any seed, advanced by each call. Return: the next number. */
static inline uint64_t base_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/** base_now_ns() - Return: CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t base_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}
