/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <signal.h>

#include "daemon/models/arrival.h"
#include "daemon/plans/profile.h"
#include "daemon/service/log.h"

#define TICK_MS 1000u
#define AWAITED_THREADS 4u
#define BESIDE_THREADS 2u
#define LAST_STEP_MS 1000u         /* for a load that is called off */
#define GAP_NS (2 * BASE_NS_PER_S) /* between ticks: the process did not run */

static void on_wake(void *daemon)
{
    struct dmn_daemon *d = daemon;

    atomic_thread_fence(memory_order_seq_cst);
    for (struct dmn_model *m = dmn_model_first(&d->models); m; m = dmn_model_next(m)) {
        dmn_model_collect(m);
    }
    dmn_profile_step(&d->plans);
}

/* On while it serves, slow blinking while it tunes, fast blinking while it is degraded, one flash a
 * second while it drains. */
static enum gov_led led(const struct dmn_daemon *d)
{
    static const enum gov_led leds[] = {[DMN_STATE_SERVING] = GOV_LED_ON,
                                        [DMN_STATE_TUNING] = GOV_LED_SLOW,
                                        [DMN_STATE_DEGRADED] = GOV_LED_FAST,
                                        [DMN_STATE_DRAINING] = GOV_LED_FLASH};

    return leds[dmn_daemon_state(d)];
}

/* ---- the end: frames in flight are answered, up to a deadline ---- */

static bool idle(const struct dmn_daemon *d)
{
    for (const struct dmn_model *m = dmn_model_first(&d->models); m; m = dmn_model_next(m)) {
        if (m->running > 0 || dmn_model_waiting(m) > 0) {
            return false;
        }
    }
    return dmn_frames_drained(&d->frames);
}

static void on_deadline(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;

    dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "some frames in flight were not answered within %lld ms; stopping anyway",
                 (long long)dmn_config_int(d->config, DMN_KEY_DRAIN_MS));
    d->drained = true;
    uv_stop(&d->loop);
}

static void drain_begin(struct dmn_daemon *d)
{
    if (d->draining) { /* a second request: stop now */
        d->drained = true;
        uv_stop(&d->loop);
        return;
    }
    dmn_notify(&d->notify, "STOPPING=1\nSTATUS=draining");
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_DRAIN},
                 "stopping: answering the frames in flight");
    dmn_acceptor_stop(&d->frames.acceptor);
    dmn_control_stop_accepting(&d->control);
    dmn_plans_give_up(&d->plans, "the daemon is stopping");
    dmn_boards_stop(&d->boards);
    dmn_frames_drain_begin(&d->frames);
    d->draining = d->models.stopping = true;
    dmn_control_draining(&d->control);
    dmn_arrivals_leave(&d->models); /* what they load would serve nobody */
    uv_timer_start(&d->drain, on_deadline, (uint64_t)dmn_config_int(d->config, DMN_KEY_DRAIN_MS),
                   0);
}

static void drain_check(struct dmn_daemon *d)
{
    if (!d->draining || d->drained || !idle(d)) {
        return;
    }
    dmn_frames_take_in(&d->frames); /* frames sent since get an answer too: "unavailable" */
    if (idle(d)) {
        d->drained = true;
        uv_stop(&d->loop);
    }
}

/* ---- turns of the loop ---- */

static void on_more(uv_timer_t *timer)
{
    (void)timer; /* settle() has its turn */
}

/* What is left of clients' turns is for the next turn of the loop, or for a later one. */
static void go_on(struct dmn_daemon *d)
{
    uint64_t wait_ns = dmn_loop_may_wait(&d->turns);

    if (wait_ns == UINT64_MAX) {
        uv_timer_stop(&d->more);
    } else {
        uv_timer_start(&d->more, on_more, (wait_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS, 0);
    }
}

/* Runs before the loop waits again: handles what clients sent, goes on after finished switches and
 * emptied pipelines, and answers frames. Models are freed only here, so every callback may walk the
 * list of models. */
static void settle(uv_prepare_t *prepare)
{
    struct dmn_daemon *d = prepare->data;
    struct dmn_model *next;

    dmn_loop_turn(&d->turns);
    for (struct dmn_model *m = dmn_model_first(&d->models); m; m = next) {
        next = dmn_model_next(m);
        dmn_plans_settle(m);
        dmn_model_after(m);
    }
    dmn_frames_settle(&d->frames);
    if (dmn_boards_settle(&d->boards)) {
        dmn_frames_settle(&d->frames);
    }
    dmn_gpio_show(&d->machine, led(d));
    drain_check(d);
    go_on(d);
}

/* A process that was stopped, or whose machine slept, gave nobody a chance to speak. Return: for
 * how long it did not run since the last tick. */
static uint64_t held_up_ns(struct dmn_daemon *d, uint64_t now_ns)
{
    uint64_t gap = now_ns - d->ticked_ns;

    d->ticked_ns = now_ns;
    return gap > GAP_NS ? gap - TICK_MS * BASE_NS_PER_MS : 0;
}

static void on_tick(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;
    uint64_t now = base_now_ns(), held_ns = held_up_ns(d, now);

    for (struct dmn_model *m = d->models.models; m; m = m->next) {
        dmn_model_tick(m, now);
    }
    dmn_watchdog_healthy(d);
    dmn_listening_tick(d);
    dmn_state_folder_tick(d);
    dmn_hotplug_check(&d->machine, base_now_ns());
    dmn_frames_tick(&d->frames, now, held_ns);
    dmn_control_tick(&d->control, now, held_ns);
    if (d->ready && !d->draining) {
        dmn_daemon_status(d);
        dmn_choose_again_tick(&d->models, now);
    }
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct dmn_daemon *d = signal->data;

    if (number == SIGHUP) {
        dmn_reload_begin(d, (struct dmn_done){0});
    } else {
        drain_begin(d);
    }
}

int dmn_daemon_loop(struct dmn_daemon *d)
{
    uv_timer_t *timers[] = {&d->tick, &d->watchdog, &d->drain, &d->more};
    uv_signal_t *signals[] = {&d->sighup, &d->sigterm, &d->sigint};
    int error = uv_loop_init(&d->loop);

    if (error < 0) {
        return error;
    }
    d->has_loop = true;
    for (size_t i = 0; i < base_array_count(timers); i++) {
        uv_timer_init(&d->loop, timers[i]);
        timers[i]->data = d;
    }
    dmn_notify_init(&d->notify, &d->loop);
    uv_prepare_init(&d->loop, &d->settle);
    d->settle.data = d;
    uv_prepare_start(&d->settle, settle);
    for (size_t i = 0; i < base_array_count(signals); i++) {
        uv_signal_init(&d->loop, signals[i]);
        signals[i]->data = d;
    }
    uv_signal_start(&d->sighup, on_signal, SIGHUP);
    return dmn_wake_init(&d->wake, &d->loop, on_wake, d);
}

/* @binds: the daemon makes a socket itself. Return: 0, or the exit code. */
static int validate(struct dmn_daemon *d, bool binds)
{
    char text[DMN_CONFIG_ERROR_MAX];

    if (dmn_validate(&d->machine, binds, text, &d->socket_group) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s", text);
        return DMN_EXIT_CONFIG;
    }
    dmn_validate_doubt(d->config, text);
    if (text[0]) {
        dmn_log(LOG_WARNING, "%s", text);
    }
    return 0;
}

/* Those that it needs for as long as it runs; the log says why one is missing. */
static int start_threads(struct dmn_daemon *d)
{
    int error = dmn_work_new(&d->loop, "piped:work", AWAITED_THREADS, false, &d->machine.awaited);

    error = error
                ? error
                : dmn_work_new(&d->loop, "piped:beside", BESIDE_THREADS, true, &d->machine.beside);
    if (error < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot start %u work threads: %s; allow more threads (TasksMax= of the unit, "
                     "ulimit -u) or more address space (LimitAS=, ulimit -v)",
                     AWAITED_THREADS + BESIDE_THREADS, strerror(-error));
        return error;
    }
    error = dmn_work_new(&d->loop, "piped:disk", 1, false, &d->models.disk);
    if (error < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot start the thread that writes to the state directory: %s",
                     strerror(-error));
        return error;
    }
    return 0;
}

/* Return: 0, or -ENOMEM. */
static int make_seats(struct dmn_daemon *d)
{
    size_t cores = 0;

    for (size_t i = 0; i < d->machine.eps.count; i++) {
        cores += d->machine.eps.eps[i].cpu_count;
    }
    d->models.seats =
        pl_seats_new(cores, (double)dmn_config_int(d->config, DMN_KEY_PLANNER_FLOOR) / 100);
    return d->models.seats ? 0 : -ENOMEM;
}

/* What serves, but for the sockets. Return: 0, or the exit code. */
static int start_rooms(struct dmn_daemon *d, bool binds)
{
    const char *admin_group = dmn_config_string(d->config, DMN_KEY_ADMIN_GROUP);
    struct dmn_users found;
    int error = validate(d, binds);

    if (!error && binds) {
        error = dmn_runtime_dir_take(d);
    }
    if (error) {
        return error;
    }
    dmn_users_look_up(admin_group, &found);
    dmn_users_set(&d->users, &found, admin_group);
    dmn_state_folder_take(d);
    dmn_copies_clean(&d->models, d->config);
    if (d->runtime_dir) {
        d->plans.scratch_dir = d->runtime_dir;
    }
    if (dmn_plans_start(&d->plans) < 0 || dmn_hotplug_start(&d->machine) < 0 || make_seats(d) < 0) {
        dmn_log(LOG_ERR, "out of memory");
        return DMN_EXIT_FAILED;
    }
    dmn_sensors_start(&d->machine); /* saved plans are chosen by the state that sensors show */
    return dmn_first_models(d, on_signal);
}

int dmn_daemon_init(struct dmn_daemon *d, const struct dmn_args *args, struct dmn_config *config,
                    struct dmn_inherited sockets)
{
    struct timespec now;
    int error;

    clock_gettime(CLOCK_REALTIME, &now);
    d->args = args;
    d->config = config;
    d->host.started_ns = base_now_ns();
    d->host.started_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    d->lock_fd = -1;
    dmn_wire(d);
    signal(SIGPIPE, SIG_IGN);
    dmn_first_signals();
    if (dmn_daemon_loop(d) < 0) {
        dmn_log(LOG_ERR, "out of memory");
        error = DMN_EXIT_FAILED;
    } else if (start_threads(d) < 0) {
        error = DMN_EXIT_FAILED;
    } else if ((error = dmn_loop_reserve(&d->loop, &d->first_watch)) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot make room for clients' connections: %s", strerror(-error));
        error = DMN_EXIT_FAILED;
    } else {
        error = start_rooms(d, sockets.frames < 0 || sockets.control < 0);
    }
    if (error) {
        dmn_inherited_close(&sockets);
        return error;
    }
    return dmn_listening_start(d, sockets.frames, sockets.control) < 0 ? DMN_EXIT_FAILED : 0;
}

void dmn_daemon_run(struct dmn_daemon *d)
{
    char cpus[512] = "";
    size_t cores = 0;

    for (size_t i = 0; i < d->machine.eps.count; i++) {
        char list[256];

        cores += d->machine.eps.eps[i].cpu_count;
        gov_cpulist_format(d->machine.eps.eps[i].cpus, d->machine.eps.eps[i].cpu_count, list,
                           sizeof(list));
        base_append(cpus, sizeof(cpus), "%s%s %s", i ? ", " : "", d->machine.eps.eps[i].name, list);
    }
    d->ticked_ns = base_now_ns();
    uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    dmn_watchdog_start(d);
    dmn_gpio_start(&d->machine, led(d));
    if (dmn_adapt_start(&d->plans, &d->adapt) < 0) {
        dmn_log(LOG_ERR, "out of memory: plans will not follow changes of the machine");
    }
    dmn_promises_check(d->config, cores);
    d->ready = true;
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_STARTED},
                 "piped %s serves %zu model%s in %s on cores %s (OpenBLAS %s)", PIPED_VERSION,
                 dmn_model_count(&d->models), base_plural(dmn_model_count(&d->models)),
                 d->runtime_dir ? d->runtime_dir : "inherited sockets", cpus, d->host.blas.core);
    dmn_notify(&d->notify, "READY=1");
    dmn_daemon_status(d);
    uv_run(&d->loop, UV_RUN_DEFAULT);
}

/* A step of a load that has no end in sight, such as one call of a library, holds up no stop: all
 * else is done by now. */
static void on_patience_lost(uv_timer_t *timer)
{
    dmn_log(LOG_NOTICE, "stopped without waiting for the load in work");
    fflush(NULL);
    _exit(DMN_EXIT_OK);
}

static void lose_patience_later(struct dmn_daemon *d)
{
    if (!LIST_EMPTY(&d->models.arrivals)) {
        uv_timer_start(&d->drain, on_patience_lost, LAST_STEP_MS, 0);
        uv_unref((uv_handle_t *)&d->drain);
    } else {
        uv_close((uv_handle_t *)&d->drain, NULL);
    }
}

/* Closes the daemon's own handles; connections and listeners close theirs. */
static void close_handles(struct dmn_daemon *d)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&d->tick,    (uv_handle_t *)&d->watchdog, (uv_handle_t *)&d->sighup,
        (uv_handle_t *)&d->sigterm, (uv_handle_t *)&d->sigint,   (uv_handle_t *)&d->settle,
        (uv_handle_t *)&d->more,
    };

    for (size_t i = 0; i < base_array_count(handles); i++) {
        uv_close(handles[i], NULL);
    }
    dmn_wake_close(&d->wake);
    dmn_notify_deinit(&d->notify);
}

int dmn_daemon_deinit(struct dmn_daemon *d)
{
    int error = 0;

    d->draining = d->frames.draining = d->models.stopping = true;
    dmn_acceptor_stop(&d->frames.acceptor);
    dmn_control_stop_accepting(&d->control);
    dmn_arrivals_leave(&d->models);
    dmn_plans_stop(&d->plans);
    d->adapt = dmn_adapt_stop(d->adapt);
    dmn_gpio_stop(&d->machine);
    dmn_hotplug_stop(&d->machine);
    dmn_preparing_stop(&d->frames);
    /* Joins the teams, so that nobody touches clients' memory any more. The oldest go first: what
     * they still compute may belong to streams that a reload moved to a newer model. */
    while (d->models.leaving) {
        struct dmn_model *oldest = d->models.leaving;

        while (oldest->next) {
            oldest = oldest->next;
        }
        dmn_model_destroy(oldest);
    }
    while (d->models.models) {
        dmn_model_destroy(d->models.models);
    }
    dmn_work_stop(d->models.disk); /* answers calls that wait for it */
    dmn_sensors_stop(&d->machine); /* until here models saved state by its snapshots */
    dmn_frames_settle(&d->frames); /* last answers */
    dmn_frames_close_all(&d->frames);
    dmn_control_close_all(&d->control);
    if (d->has_loop) {
        close_handles(d);
        /* From here on, a repeated request to stop must change nothing. Without its handle the
         * signal would kill the process in the middle of a clean stop. */
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        lose_patience_later(d);
        uv_run(&d->loop, UV_RUN_DEFAULT);
        if (!uv_is_closing((uv_handle_t *)&d->drain)) {
            uv_close((uv_handle_t *)&d->drain, NULL);
        }
        dmn_work_stop(d->machine.awaited); /* both have nothing left to do */
        dmn_work_stop(d->machine.beside);
        uv_run(&d->loop, UV_RUN_DEFAULT);
        error = uv_loop_close(&d->loop);
        if (error) {
            dmn_log(LOG_ERR, "internal error: a handle was left open");
        }
    }
    dmn_frames_deinit(&d->frames);
    dmn_loop_turns_deinit(&d->turns);
    dmn_boards_deinit(&d->boards);
    dmn_history_deinit(&d->plans.history);
    dmn_failed_clear(&d->models.failed);
    d->models.seats = pl_seats_free(d->models.seats);
    d->machine.awaited = dmn_work_free(d->machine.awaited);
    d->machine.beside = dmn_work_free(d->machine.beside);
    d->models.disk = dmn_work_free(d->models.disk);
    dmn_state_unlock();
    d->config = dmn_config_free(d->config);
    base_close_fd(&d->lock_fd);
    dmn_machine_deinit(&d->machine);
    free(base_take(d->runtime_dir));
    free(base_take(d->state_dir));
    return error;
}
