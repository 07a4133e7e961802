/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the rooms: gives each the rooms it uses, and registers listeners. */
#include <stdatomic.h>

#include "base/base.h"
#include "daemon/daemon.h"
#include "ipc/wire.h"

/* The fence orders the team's push before the wake; its twin in on_wake() orders the wake before
 * the loop reads the rings. */
static void wake(void *daemon)
{
    struct dmn_daemon *d = daemon;

    atomic_thread_fence(memory_order_seq_cst);
    dmn_wake_send(&d->wake);
}

static uint64_t answered(void *ctx)
{
    struct dmn_daemon *d = ctx;
    uint64_t frames = 0;

    for (const struct dmn_model *m = d->models.models; m; m = m->next) {
        frames += m->stats.answered;
    }
    return frames;
}

static void plan_changed(void *ctx, struct dmn_model *m)
{
    dmn_frames_plan_changed(m);
}

static enum dmn_state state(const void *ctx)
{
    return dmn_daemon_state(ctx);
}

static bool reload(void *ctx, struct dmn_done done)
{
    return dmn_reload_begin(ctx, done);
}

/* plans/ listens before frames/: when a model goes, the end of its search may change the plan. */
void dmn_wire(struct dmn_daemon *d)
{
    dmn_loop_turns_init(&d->turns);
    d->machine.loop = &d->loop;
    d->machine.config = &d->config;
    d->machine.sysfs_root = d->args->sysfs_root ? d->args->sysfs_root : "/";
    d->machine.answered = answered;
    d->machine.answered_ctx = d;
    STAILQ_INIT(&d->models.failed);
    d->models.machine = &d->machine;
    d->models.state_dir = d->state_dir;
    d->models.wake = wake;
    d->models.wake_arg = d;
    d->models.frame_bytes_max = IPC_POOL_BYTES_MAX;
    d->plans.models = &d->models;
    d->plans.machine = &d->machine;
    d->plans.scratch_dir = d->runtime_dir ? d->runtime_dir : "/tmp";
    dmn_plans_init(&d->plans);
    dmn_frames_init(&d->frames, &d->loop, &d->config, &d->models);
    d->frames.users = &d->users;
    d->frames.turns = &d->turns;
    d->frames_listener.plan_changed = plan_changed;
    dmn_plans_listen(&d->plans, &d->frames_listener);
    d->boards.plans = &d->plans;
    dmn_boards_init(&d->boards);
    d->route_listener.serving_changed = plan_changed;
    dmn_boards_listen(&d->boards, &d->route_listener);
    d->host.ctx = d;
    d->host.state = state;
    d->host.reload = reload;
    d->control.machine = &d->machine;
    d->control.models = &d->models;
    d->control.frames = &d->frames;
    d->control.plans = &d->plans;
    d->control.boards = &d->boards;
    d->control.host = &d->host;
    d->control.users = &d->users;
    d->control.turns = &d->turns;
}
