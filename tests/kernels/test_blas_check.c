/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a wrong OpenBLAS core noticed? The test starts itself again with the core that OpenBLAS falls
 * back to on CPUs that it does not know, and with the one that is then asked for.
 */
#include <sys/wait.h>

#include "kernels/blas_check.h"
#include "kernels/kernels.h"
#include "tests/harness.h"

static const char *self;

/* runs "SELF status" with OPENBLAS_CORETYPE and gives its line: core, wanted, threads */
static bool status_with(const char *core, struct krn_blas_status *ret)
{
    const char *emulator = getenv("MESON_EXE_WRAPPER");
    char command[4200];
    int single = 0;
    FILE *f;
    bool ok;

    snprintf(command, sizeof(command), "OPENBLAS_CORETYPE=%s OPENBLAS_NUM_THREADS=2 %s '%s' status",
             core, emulator ? emulator : "", self);
    f = popen(command, "r");
    if (!f) {
        return false;
    }
    memset(ret, 0, sizeof(*ret));
    ok = fscanf(f, "core=%31s wanted=%31s single=%d", ret->core, ret->wanted, &single) == 3;
    ret->single_threaded = single;
    if (strcmp(ret->wanted, "-") == 0) {
        ret->wanted[0] = '\0';
    }
    return pclose(f) == 0 && ok;
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

int main(int argc, char **argv)
{
    struct krn_blas_status s;

    self = argv[0];
    if (argc == 2 && strcmp(argv[1], "status") == 0) {
        krn_blas_check(&s);
        printf("core=%s wanted=%s single=%d\n", s.core, s.wanted[0] ? s.wanted : "-",
               s.single_threaded);
        return 0;
    }
    return t_main(argc, argv);
}
