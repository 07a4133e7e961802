/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/daemon_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/frames/peer.h"
#include "daemon/machine/machine.h"
#include "daemon/models/arrival.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "daemon/plans/retune.h"
#include "daemon/plans/switch.h"
#include "tests/fuzz/replay.h"
#include "tests/unit/governor/tree.h"

#define PATIENCE_NS (25 * BASE_NS_PER_S)
#define FDS_MAX 512
#define ALL_CORES "0-3"
#define MODELS 2u

static struct dmn_daemon *d;
static struct dmn_args args;
static struct tree folder;
static char files[RIG_FILES][96], config_path[96], runtime[96], state[96], machine[96];
static char base_plan[MODELS][PL_PLAN_TEXT_MAX], cores[16];
static size_t base_fds;

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    MUST(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

const char *rig_file(enum rig_file f)
{
    return files[f];
}

void rig_configure(enum rig_file a)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"models\": [{\"name\": \"a\", \"path\": \"%s\", \"kernels\": \"__ref\"}, "
             "{\"name\": \"b\", \"path\": \"%s\", \"kernels\": \"__ref\"}], \"pin\": false, "
             "\"spin_us\": 0, \"kernels\": {\"measure_ms\": 0}, \"history_events\": 16, "
             "\"default_model\": \"a\", "
             "\"adapt\": {\"window_ms\": 20}, "
             "\"planner\": {\"frames\": 2, \"measure_ms\": 20, \"tune_s\": 1}, "
             "\"limits\": {\"models\": 4, \"backlog_kib\": 64, \"image_mpixels\": 1, "
             "\"streams\": 4}}\n",
             files[a], files[RIG_B]);
    put(config_path, text);
}

static void make_files(void)
{
    static const char *const names[RIG_FILES] = {"a", "a2", "b"};
    char text[512];

    for (size_t i = 0; i < RIG_FILES; i++) {
        snprintf(files[i], sizeof(files[i]), "%s/%s.json", folder.root, names[i]);
        snprintf(text, sizeof(text),
                 "{\"seed\": %zu, \"input\": {\"shape\": [3, 6, 6]}, \"layers\": [{\"op\": "
                 "\"conv\", \"out\": 2, \"kernel\": 3}, {\"op\": \"conv\", \"out\": 3, \"kernel\": "
                 "1}, {\"op\": \"conv\", \"out\": 2, \"kernel\": 2}, {\"op\": \"fc\", \"out\": "
                 "%d}]}\n",
                 i + 1, i == RIG_B ? 5 : 3);
        put(files[i], text);
    }
    snprintf(config_path, sizeof(config_path), "%s/piped.json", folder.root);
    snprintf(runtime, sizeof(runtime), "%s/run", folder.root);
    snprintf(state, sizeof(state), "%s/state", folder.root);
    snprintf(machine, sizeof(machine), "%s/machine", folder.root);
    rig_configure(RIG_A);
}

static size_t open_fds(void)
{
    static struct pollfd fds[FDS_MAX];
    size_t count = 0;

    for (int i = 0; i < FDS_MAX; i++) {
        fds[i] = (struct pollfd){.fd = i};
    }
    MUST(poll(fds, FDS_MAX, 0) >= 0);
    for (int i = 0; i < FDS_MAX; i++) {
        count += (fds[i].revents & POLLNVAL) == 0;
    }
    return count;
}

void rig_turn(void)
{
    /* what the first turn begins, the second settles */
    uv_run(&d->loop, UV_RUN_NOWAIT);
    uv_run(&d->loop, UV_RUN_NOWAIT);
}

void rig_pause(void)
{
    struct pollfd loop = {.fd = uv_backend_fd(&d->loop), .events = POLLIN};

    poll(&loop, 1, 1);
}

static const char *work(void);

static void wait_for(bool (*holds)(void), const char *what)
{
    uint64_t until = base_now_ns() + PATIENCE_NS;

    for (;;) {
        rig_turn();
        if (holds()) {
            return;
        }
        if (base_now_ns() > until) {
            fprintf(stderr, "not true: %s; at work: %s\n", what, work() ? work() : "nothing");
            abort();
        }
        rig_pause();
    }
}

#define wait_until(holds) wait_for(holds, #holds)

/* Return: what there is still to do; NULL: nothing. */
static const char *work_of(const struct dmn_model *m)
{
    return m->running              ? "frames run"
           : dmn_model_waiting(m)  ? "frames wait"
           : pl_in_flight(m->pipe) ? "frames are in the pipeline"
           : m->planning->retune   ? "a search runs"
           : dmn_plan_changing(m)  ? "somebody waits for a plan"
                                   : NULL;
}

static const char *work_of_clients(void)
{
    struct dmn_frames *f = &d->frames;

    dmn_account_trim(&f->accounts); /* as the next client would have it */
    return f->server.conn_count || !LIST_EMPTY(&f->server.conns) ? "clients"
           : !LIST_EMPTY(&f->accounts)                           ? "users' accounts"
           : f->inline_bytes                                     ? "buffers"
           : f->preparing.record                                 ? "a picture is prepared"
           : d->control.count || !LIST_EMPTY(&d->control.conns)  ? "control clients"
           : !LIST_EMPTY(&d->control.loads)                      ? "Load calls"
           : !LIST_EMPTY(&d->control.subscribers)                ? "subscribers"
                                                                 : NULL;
}

static const char *work(void)
{
    const char *what = work_of_clients();

    for (const struct dmn_model *m = d->models.models; m && !what; m = m->next) {
        what = work_of(m);
    }
    return what                               ? what
           : d->models.leaving                ? "models leave"
           : !LIST_EMPTY(&d->models.arrivals) ? "models arrive"
           : d->models.hot_swap               ? "a model is replaced"
           : d->reload                        ? "a reload"
           : dmn_profiling(&d->plans)         ? "a profile"
                                              : NULL;
}

static bool idle(void)
{
    return !work();
}

static bool no_more_fds(void)
{
    return open_fds() <= base_fds;
}

static void copy_out(void *ctx, const struct dmn_outcome *o)
{
    MUST(!o);
    *(bool *)ctx = true;
}

static bool finished;

static bool is_finished(void)
{
    return finished && idle();
}

static void reload(void)
{
    finished = false;
    MUST(dmn_reload_begin(d, (struct dmn_done){copy_out, &finished}));
    wait_until(is_finished);
}

/* Return: @m is of the configuration, with the file that it has at rest. */
static bool is_base(const struct dmn_model *m)
{
    return m->from_config && (strcmp(m->path, files[RIG_A]) == 0 || strcmp(m->name, "b") == 0);
}

static void base_models(void)
{
    struct dmn_model *m = d->models.models;

    while (m) {
        if (is_base(m)) {
            m = m->next;
        } else {
            finished = false;
            dmn_model_unload(m, (struct dmn_done){copy_out, &finished});
            wait_until(is_finished);
            m = d->models.models;
        }
    }
    rig_configure(RIG_A);
    reload();
    MUST(dmn_model_count(&d->models) == MODELS);
}

static bool has_all_cores(void)
{
    return idle() && d->machine.eps.count == 2 && d->machine.eps.eps[0].cpu_count == 2 &&
           d->machine.eps.eps[1].cpu_count == 2;
}

/* Return: they are; else has one changed, if none is changing. */
static bool has_base_plans(void)
{
    char text[PL_PLAN_TEXT_MAX], why[256];

    for (struct dmn_model *m = d->models.models; m && idle(); m = m->next) {
        base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
        const char *base = base_plan[m->name[0] - 'a'];

        dmn_model_plan_text(m, text);
        if (strcmp(text, base) != 0) {
            MUST(plan && pl_plan_parse(base, pl_current_eps(m->pipe), m->model->unit_count, why,
                                       sizeof(why), plan) == 0);
            dmn_plan_switch(m, &(struct dmn_switch){.plan = plan,
                                                    .origin = DMN_ORIGIN_EXACT,
                                                    .cause = DMN_CAUSE_REQUEST,
                                                    .detail = "rest"});
            return false;
        }
    }
    return idle();
}

static void cancel_searches(void)
{
    for (struct dmn_model *m = d->models.models; m; m = m->next) {
        dmn_retune_cancel(m);
    }
    if (dmn_profiling(&d->plans)) {
        dmn_profile_abort(&d->plans, "all clients are gone");
    }
}

void rig_rest(bool changed)
{
    cancel_searches();
    wait_until(idle);
    if (changed) {
        base_models();
    }
    if (strcmp(cores, ALL_CORES) != 0) {
        rig_cores(ALL_CORES);
    }
    wait_until(has_all_cores);
    wait_until(has_base_plans);
    wait_until(no_more_fds);
}

void rig_cores(const char *online)
{
    char path[160];

    snprintf(cores, sizeof(cores), "%s", online);
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", machine);
    put(path, online);
    dmn_hotplug_check(&d->machine, base_now_ns());
}

int rig_connect(bool control, uid_t uid)
{
    struct dmn_acceptor *a = control ? &d->control.acceptor : &d->frames.acceptor;
    struct ucred peer = {.pid = getpid(), .uid = uid, .gid = uid};
    int pair[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    a->accepted(a->ctx, pair[0], &peer);
    return pair[1];
}

static void stop(void)
{
    rig_rest(true);
    MUST(dmn_daemon_deinit(d) == 0);
    free(base_take(d));
    tree_deinit(&folder);
}

static void make_machine(void)
{
    static char tree[] = "present = 0-3\nonline = 0-3\n[0-1] cpu_capacity = 1024\n"
                         "[2-3] cpu_capacity = 512\n[0-1] topology/cluster_cpus_list = 0-1\n"
                         "[2-3] topology/cluster_cpus_list = 2-3\n";
    struct tree t;
    char *save = NULL;

    snprintf(t.root, sizeof(t.root), "%.63s", machine);
    MUST(mkdir(machine, 0755) == 0);
    for (char *line = strtok_r(tree, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        tree_line(&t, line);
    }
    snprintf(cores, sizeof(cores), "%s", ALL_CORES);
}

void rig_start(void)
{
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_config *config = NULL;

    if (d) { /* a fuzzer opens some of its own between inputs */
        base_fds = open_fds();
        return;
    }
    folder = tree_new("");
    make_files();
    make_machine();
    d = calloc(1, sizeof(*d));
    args = (struct dmn_args){
        .config = config_path, .runtime_dir = runtime, .state_dir = state, .sysfs_root = machine};
    MUST(d && dmn_config_from_args(&args, state, error, &config) == 0);
    MUST(dmn_daemon_init(d, &args, config, (struct dmn_inherited)DMN_INHERITED_NULL) == 0);
    uv_stop(&d->loop); /* it returns before the first turn */
    dmn_daemon_run(d);
    MUST(d->ready && dmn_model_count(&d->models) == MODELS);
    for (const struct dmn_model *m = d->models.models; m; m = m->next) {
        dmn_model_plan_text(m, base_plan[m->name[0] - 'a']);
    }
    atexit(stop);
    close(rig_connect(true, 0)); /* libuv keeps a descriptor from the first client on */
    wait_until(idle);
    reload();
    base_fds = open_fds();
}
