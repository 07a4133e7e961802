/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a wrong OpenBLAS core noticed? The test starts itself again with the core that OpenBLAS falls
 * back to on CPUs that it does not know, or with one above what PIPED_CPU allows, and with the one
 * that is then asked for. "test_blas_check status" also tells tests/cpu_classes.py what to set.
 */
#include <sys/wait.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "kernels/lib/blas.h"
#include "tests/harness.h"

static const char *self;

/* Runs "SELF status" with OPENBLAS_CORETYPE, under PIPED_CPU=@cpu or, if NULL, what is set. */
static bool status_of(const char *cpu, const char *core, struct krn_blas_status *ret)
{
    const char *emulator = getenv("MESON_EXE_WRAPPER");
    char command[4300];
    int single = 0, above = 0;
    FILE *f;
    bool ok;

    snprintf(command, sizeof(command),
             "%s%s OPENBLAS_CORETYPE=%s OPENBLAS_NUM_THREADS=2 %s '%s' status",
             cpu ? "PIPED_CPU=" : "", cpu ? cpu : "", core, emulator ? emulator : "", self);
    f = popen(command, "r");
    if (!f) {
        return false;
    }
    memset(ret, 0, sizeof(*ret));
    ok = fscanf(f, "core=%31s wanted=%31s single=%d above=%d", ret->core, ret->wanted, &single,
                &above) == 4;
    ret->single_threaded = single;
    ret->above = above;
    if (strcmp(ret->wanted, "-") == 0) {
        ret->wanted[0] = '\0';
    }
    return pclose(f) == 0 && ok;
}

static bool status_with(const char *core, struct krn_blas_status *ret)
{
    return status_of(NULL, core, ret);
}

TEST(blas_runs_single_threaded_whatever_the_environment_says)
{
    struct krn_blas_status s;

    T_TRUE(status_with("", &s));
    T_TRUE(s.single_threaded);
    T_TRUE(s.core[0] != '\0');
}

TEST(a_core_below_the_cpu_is_noticed)
{
    struct krn_blas_status s, better;

    if (!(krn_cpu_features() & KRN_CPU_AVX2)) {
        T_SKIP("this CPU has no AVX2: there is no better core to ask for");
    }
    T_TRUE(status_with("Prescott", &s));
    if (strcmp(s.core, "Prescott") != 0) {
        T_SKIP("this OpenBLAS cannot be told its core");
    }
    T_STR(s.wanted, krn_cpu_features() & KRN_CPU_AVX512 ? "SkylakeX" : "Haswell");
    T_TRUE(status_with(s.wanted, &better));
    T_STR(better.core, s.wanted);
    T_STR(better.wanted, "");
}

TEST(a_core_above_what_is_allowed_is_noticed)
{
    static const struct {
        const char *cpu, *core, *wanted;
        uint32_t has; /* so that it is narrowed */
    } tried[] = {{"sse2", "Haswell", "Prescott", KRN_CPU_AVX2},
                 {"sse2", "SkylakeX", "Prescott", KRN_CPU_AVX512},
                 {"avx2", "SkylakeX", "Haswell", KRN_CPU_AVX512},
                 {"avx512vnni", "Cooperlake", "SkylakeX", KRN_CPU_AVX512BF16}};
    struct krn_blas_status s, narrow;
    size_t ran = 0;

    for (size_t i = 0; i < base_array_count(tried); i++) {
        if (!(krn_cpu_features() & tried[i].has)) {
            continue;
        }
        T_TRUE(status_of(tried[i].cpu, tried[i].core, &s));
        if (strcmp(s.core, tried[i].core) != 0) {
            continue; /* this OpenBLAS cannot be told its core, or does not have that one */
        }
        T_TRUE(s.above);
        T_STR(s.wanted, tried[i].wanted);
        T_TRUE(status_of(tried[i].cpu, s.wanted, &narrow));
        T_STR(narrow.core, s.wanted);
        T_STR(narrow.wanted, "");
        T_TRUE(!narrow.above);
        ran++;
    }
    if (!ran) {
        T_SKIP("nothing above that this CPU and this OpenBLAS have");
    }
}

int main(int argc, char **argv)
{
    struct krn_blas_status s;

    self = argv[0];
    if (argc == 2 && strcmp(argv[1], "status") == 0) {
        char names[KRN_CPU_TEXT_MAX];

        krn_blas_check(&s);
        printf("core=%s wanted=%s single=%d above=%d features=%s\n", s.core,
               s.wanted[0] ? s.wanted : "-", s.single_threaded, s.above,
               krn_cpu_names(krn_cpu_features(), names));
        return 0;
    }
    return t_main(argc, argv);
}
