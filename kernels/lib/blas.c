/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"
#include "kernels/lib/library_room.h"

#define BUFFERS_MAX 256u
#define ROOM_BYTES ((size_t)144 << 20) /* a buffer of OpenBLAS 0.3.21 on x86, and some more */

/* Not in its header. Without them, its calls take their buffers as they please. */
extern void *blas_memory_alloc(int of_main_thread) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static void *buffers[BUFFERS_MAX]; /* by `growing` */
static _Atomic size_t have;        /* buffers; written by who holds `growing` */
static _Atomic size_t taken;       /* of them; written by every caller */

static bool try_take(void)
{
    size_t now = atomic_load_explicit(&taken, memory_order_relaxed);

    while (now < atomic_load_explicit(&have, memory_order_acquire)) {
        if (atomic_compare_exchange_weak_explicit(&taken, &now, now + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* All known buffers are taken, so that OpenBLAS makes another; or one was just returned, and that
 * is as good. Return: false: there is no memory for it. */
static bool add_one(void)
{
    size_t count = atomic_load_explicit(&have, memory_order_relaxed), i = 0;
    void *p;

    if (count == BUFFERS_MAX || krn_library_room(ROOM_BYTES) < 0) {
        return false;
    }
    p = blas_memory_alloc(0);
    while (i < count && buffers[i] != p) {
        i++;
    }
    blas_memory_free(p);
    if (i == count) {
        buffers[count] = p;
        atomic_store_explicit(&have, count + 1, memory_order_release);
    }
    return true;
}

static void grow(size_t count)
{
    void *held[BUFFERS_MAX];
    bool more = true;

    pthread_mutex_lock(&growing);
    while (more && atomic_load_explicit(&have, memory_order_relaxed) < count) {
        size_t n = 0;

        while (n < BUFFERS_MAX && try_take()) {
            held[n++] = blas_memory_alloc(0);
        }
        more = add_one();
        while (n > 0) {
            blas_memory_free(held[--n]);
            krn_blas_give();
        }
    }
    pthread_mutex_unlock(&growing);
}

int krn_blas_prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                     struct krn_prepared *p)
{
    if (!blas_memory_alloc || !blas_memory_free) {
        return 0;
    }
    grow(width);
    return atomic_load_explicit(&have, memory_order_relaxed) > 0 ? 0 : -ENOMEM;
}

void krn_blas_release(struct krn_prepared *p)
{
    *p = (struct krn_prepared){0};
}

void krn_blas_take(void)
{
    if (!blas_memory_alloc || !blas_memory_free) {
        return;
    }
    while (!try_take()) {
        size_t count = atomic_load_explicit(&have, memory_order_relaxed);

        grow(count + 1);
        if (atomic_load_explicit(&have, memory_order_relaxed) == count) {
            sched_yield(); /* no memory for another buffer: wait until one is returned */
        }
    }
}

void krn_blas_give(void)
{
    if (blas_memory_alloc && blas_memory_free) {
        atomic_fetch_sub_explicit(&taken, 1, memory_order_release);
    }
}

/* ---- which one is loaded ---- */

/* What the OpenBLAS core types of x86 are worth, and the one to ask for. */
enum grade { SSE, AVX2, AVX512, BF16 };
static const char *const core_of[] = {"Prescott", "Haswell", "SkylakeX", "Cooperlake"};

static enum grade core_grade(const char *core)
{
    static const struct {
        const char *name;
        enum grade grade;
    } known[] = {{"Haswell", AVX2},
                 {"Zen", AVX2},
                 {"SkylakeX", AVX512},
                 {"Cooperlake", BF16},
                 {"SapphireRapids", BF16}};

    for (size_t i = 0; i < base_array_count(known); i++) {
        if (strcasecmp(core, known[i].name) == 0) {
            return known[i].grade;
        }
    }
    return SSE;
}

void krn_blas_check(struct krn_blas_status *ret)
{
    uint32_t features = krn_cpu_features();
    enum grade can = features & KRN_CPU_AVX512BF16 ? BF16
                     : features & KRN_CPU_AVX512   ? AVX512
                     : features & KRN_CPU_AVX2     ? AVX2
                                                   : SSE;
    enum grade least = can < AVX512 ? can : AVX512, is;

    memset(ret, 0, sizeof(*ret));
    openblas_set_num_threads(1);
    ret->single_threaded = openblas_get_num_threads() == 1;
    snprintf(ret->core, sizeof(ret->core), "%s", openblas_get_corename());
    snprintf(ret->config, sizeof(ret->config), "%s", openblas_get_config());
    is = core_grade(ret->core);
    ret->above = krn_cpu_narrowed() && is > can;
    /* Only a build with several cores inside can be told which one to be. All that have AVX-512
     * compute f32 alike. */
    if ((is < least || ret->above) && strstr(ret->config, "DYNAMIC_ARCH")) {
        snprintf(ret->wanted, sizeof(ret->wanted), "%s", core_of[ret->above ? can : least]);
    }
}
