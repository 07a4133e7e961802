/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/onednn.h"

#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>

#include "kernels/lib/library_room.h"

static dnnl_engine_t engine;

/* If writable and executable memory is denied, the library's first primitive fails or crashes. */
static bool may_write_code(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool may;

    if (p == MAP_FAILED) {
        return false;
    }
    may = mprotect(p, page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
    munmap(p, page);
    return may;
}

/* The newest instruction set that the library may use. Its minimum is SSE4.1; on a CPU without it,
 * the library uses plain code by itself. */
static dnnl_cpu_isa_t isa_of(uint32_t features)
{
    return features & KRN_CPU_AMX          ? dnnl_cpu_isa_avx512_core_amx
           : features & KRN_CPU_AVX512BF16 ? dnnl_cpu_isa_avx512_core_bf16
           : features & KRN_CPU_AVX512VNNI ? dnnl_cpu_isa_avx512_core_vnni
           : features & KRN_CPU_AVX512     ? dnnl_cpu_isa_avx512_core
           : features & KRN_CPU_AVXVNNI    ? dnnl_cpu_isa_avx2_vnni
           : features & KRN_CPU_AVX2       ? dnnl_cpu_isa_avx2
                                           : dnnl_cpu_isa_sse41;
}

/* Return: whether the library obeys PIPED_CPU, which overrides ONEDNN_MAX_CPU_ISA. On Arm it has no
 * such limit, and its primitives need no CPU features. */
static bool narrow(void)
{
#if defined(__x86_64__)
    return !krn_cpu_narrowed() || dnnl_set_max_cpu_isa(isa_of(krn_cpu_features())) == dnnl_success;
#else
    return true;
#endif
}

static void engine_new(void)
{
    if (!may_write_code() || krn_library_room(KRN_DNNL_ROOM_BYTES) < 0 || !narrow() ||
        dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
        engine = NULL;
    }
}

dnnl_engine_t krn_dnnl_engine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, engine_new);
    return engine;
}

bool krn_dnnl_alone(void)
{
    static _Thread_local bool alone;

    if (!alone) {
        omp_set_num_threads(1);
        alone = omp_get_max_threads() == 1;
    }
    return alone;
}

int krn_dnnl_error(dnnl_status_t s)
{
    return s == dnnl_success ? 0 : s == dnnl_out_of_memory ? -ENOMEM : -EOPNOTSUPP;
}
