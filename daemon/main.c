/* SPDX-License-Identifier: Apache-2.0 */
/* piped: parses arguments, checks, builds, serves, tears down. */
#include <jansson.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "base/cli/cli.h"
#include "daemon/control/json.h"
#include "daemon/daemon.h"
#include "daemon/loop_slice.h"
#include "daemon/models/loading.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/folders.h"
#include "daemon/service/log.h"
#include "daemon/service/service.h"
#include "ipc/json_memory.h"
#include "kernels/common/cpu.h"

/* Set before the restart, so that there is only one. */
#define GUARD "PIPED_BLAS_RESTARTED"

/* Applies PIPED_CPU. Return: 0, or the exit code for an unknown name (logged). */
static int cpu_setup(void)
{
    char text[KRN_CPU_TEXT_MAX];

    if (krn_cpu_check(text) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s", text);
        return DMN_EXIT_CONFIG;
    }
    return 0;
}

/* Checks OpenBLAS, restarts the program once with the right core, and logs the CPU features that
 * PIPED_CPU leaves. Return: 0, or an exit code. */
static int blas_setup(char **argv, struct krn_blas_status *ret)
{
    const struct dmn_log_fields id = {.id = DMN_MSG_BLAS};
    char text[KRN_CPU_TEXT_MAX];

    krn_blas_check(ret);
    if (ret->wanted[0] && (ret->above || !getenv("OPENBLAS_CORETYPE")) && !getenv(GUARD)) {
        dmn_log_with(LOG_NOTICE, id,
                     "OpenBLAS uses its %s kernels, but %s %s: restarting with "
                     "OPENBLAS_CORETYPE=%s",
                     ret->core, ret->above ? "PIPED_CPU only allows" : "this CPU can run",
                     ret->wanted, ret->wanted);
        if (setenv("OPENBLAS_CORETYPE", ret->wanted, 1) == 0 &&
            setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0 && setenv(GUARD, "1", 1) == 0) {
            execv("/proc/self/exe", argv);
        }
        dmn_log_with(LOG_WARNING, id, "cannot restart: %s; going on with the %s kernels",
                     strerror(errno), ret->core);
    }
    if (krn_cpu_narrowed()) {
        dmn_log(LOG_NOTICE, "PIPED_CPU limits the CPU's features to %s",
                krn_cpu_names(krn_cpu_features(), text));
    }
    if (ret->above) {
        dmn_log_with(LOG_WARNING, id,
                     "OpenBLAS cannot be limited: its %s kernels use more than PIPED_CPU allows",
                     ret->core);
    }
    if (!ret->single_threaded) {
        dmn_log_with(
            LOG_ERR, id,
            "OpenBLAS (%s) does not run single-threaded; its threads would compete with the "
            "pipeline for the cores. Set OPENBLAS_NUM_THREADS=1",
            ret->config);
        return DMN_EXIT_FAILED;
    }
    return 0;
}

/* What a start that failed depends on: who mends one of these may start it at once. */
struct failed_start {
    const struct dmn_args *args;
    const char *state_dir;
    const char *error; /* of the configuration; NULL: it could be read, and ... */
    json_t *state;     /* ... this is its start_state() */
};

/* The configuration, and the files of its models as they are now. Return: owned; NULL: out of
 * memory. */
static json_t *start_state(const struct dmn_config *c)
{
    json_t *state = dmn_config_json(c);

    for (size_t i = 0; i < c->model_count; i++) {
        const struct dmn_config_model *m = &c->models[i];
        const struct dmn_stamp stamp = dmn_stamp_read(m->path, m->calibration);
        const struct dmn_file_stamp *files[] = {&stamp.model, &stamp.sidecar, &stamp.calibration};

        json_array_append_new(state, json_pack("[s, b]", m->shapes, access(m->path, R_OK) == 0));
        for (size_t k = 0; k < base_array_count(files); k++) {
            json_array_append_new(state, json_pack("[I, I, I, I]", (json_int_t)files[k]->device,
                                                   (json_int_t)files[k]->inode,
                                                   (json_int_t)files[k]->bytes,
                                                   (json_int_t)files[k]->mtime_ns));
        }
    }
    return state;
}

static bool start_changed(const void *ctx)
{
    const struct failed_start *failed = ctx;
    char error[DMN_CONFIG_ERROR_MAX];
    struct dmn_config *config = NULL;
    json_auto_t *state = NULL;

    if (dmn_config_from_args(failed->args, failed->state_dir, error, &config) < 0) {
        return !failed->error || strcmp(error, failed->error) != 0;
    }
    state = failed->error ? NULL : start_state(config);
    dmn_config_free(config);
    return failed->error || !json_equal(state, failed->state);
}

/* @in: owned from now on. */
static int serve(const struct dmn_args *args, const char *state_dir, struct dmn_config *config,
                 const struct krn_blas_status *blas, struct dmn_inherited in)
{
    struct dmn_daemon *d = calloc(1, sizeof(*d));
    struct dmn_inherited waiting = dmn_inherited_copy(&in); /* for who waits if it fails */
    json_auto_t *state = start_state(config);
    const char *failure = dmn_log_startup_failure();
    int status, error;

    if (!d) {
        dmn_log(LOG_ERR, "out of memory");
        dmn_config_free(config);
        dmn_inherited_close(&in);
        dmn_inherited_close(&waiting);
        return DMN_EXIT_FAILED;
    }
    d->host.blas = *blas;
    (void)dmn_loop_slice_set();
    status = dmn_daemon_init(d, args, config, in);
    if (status == 0) {
        dmn_inherited_close(&waiting);
        json_decref(state);
        state = NULL;
        dmn_daemon_run(d);
    }
    status = d->asked_to_stop ? DMN_EXIT_OK : status;
    error = dmn_daemon_deinit(d);
    free(d);
    if (status == 0) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_STOPPED}, "stopped");
    } else {
        dmn_refuse_start(&waiting, failure[0] ? failure : "journalctl -u piped says why",
                         status == DMN_EXIT_CONFIG ? start_changed : NULL,
                         &(struct failed_start){args, state_dir, NULL, state});
        dmn_inherited_close(&waiting);
    }
    return status ? status : error ? DMN_EXIT_FAILED : DMN_EXIT_OK;
}

#define WRONG_OPTIONS "wrong options in ExecStart= of the unit; journalctl -u piped says which"

/* A start that fails before it takes its sockets, if it has some. Return: @status. */
static int fail_early(int status, const char *why)
{
    struct dmn_inherited in = DMN_INHERITED_NULL;

    if (dmn_service_sockets(&in) == 0) {
        dmn_refuse_start(&in, why[0] ? why : "journalctl -u piped says why", NULL, NULL);
        dmn_inherited_close(&in);
    }
    return status;
}

int main(int argc, char **argv)
{
    char error[DMN_CONFIG_ERROR_MAX];
    struct krn_blas_status blas = {0};
    struct dmn_inherited in = DMN_INHERITED_NULL;
    base_autofree char *state_dir = NULL;
    struct dmn_config *config = NULL;
    struct dmn_args args;
    int status;

    shown_begin();
    prctl(PR_SET_NAME, "piped"); /* after a restart through /proc/self/exe it would be "exe" */
    status = dmn_args_parse(argc, argv, &args);
    if (status == DMN_ARGS_E_DONE) {
        return shown_end("piped", DMN_EXIT_OK);
    }
    if (status) {
        return fail_early(DMN_EXIT_USAGE, WRONG_OPTIONS);
    }
    dmn_memory_setup();
    ipc_json_setup();
    dmn_log_open(args.verbose ? LOG_DEBUG : LOG_NOTICE);
    status = cpu_setup();
    if (status) {
        return fail_early(status, dmn_log_startup_failure());
    }
    if (args.inspect) {
        return shown_end("piped", dmn_inspect(&args));
    }
    if (args.check_config) {
        return shown_end("piped", dmn_check_config(&args));
    }
    status = blas_setup(argv, &blas);
    if (status) {
        return fail_early(status, dmn_log_startup_failure());
    }
    if (dmn_service_sockets(&in) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "inherited sockets are not listening Unix stream sockets");
        return DMN_EXIT_FAILED;
    }
    state_dir = dmn_state_dir(args.state_dir, true);
    if (dmn_config_from_args(&args, state_dir, error, &config) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s", error);
        dmn_refuse_start(&in, error, start_changed,
                         &(struct failed_start){&args, state_dir, error, NULL});
        dmn_inherited_close(&in);
        return DMN_EXIT_CONFIG;
    }
    if (!args.verbose) {
        dmn_log_level(LOG_ERR + (int)dmn_config_int(config, DMN_KEY_LOG_LEVEL));
    }
    return serve(&args, state_dir, config, &blas, in);
}
