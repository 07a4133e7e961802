/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "daemon/remake.h"
#include "daemon/service/service.h"

#define TICK_MS 1000u

/* The fence orders the team's push before libuv's look at its "already pending" flag, and its twin
 * in on_wake() orders the clearing of that flag before the loop's look at the rings. Without the
 * two a send that finds one pending can be lost for good. */
void dmn_daemon_wake(void *daemon)
{
    struct dmn_daemon *d = daemon;

    atomic_thread_fence(memory_order_seq_cst);
    uv_async_send(&d->wake);
}

static void on_wake(uv_async_t *async)
{
    struct dmn_daemon *d = async->data;

    atomic_thread_fence(memory_order_seq_cst);
    for (struct dmn_model *m = d->models; m; m = m->next) {
        dmn_model_collect(m);
    }
    for (struct dmn_model *m = d->leaving; m; m = m->next) {
        dmn_model_collect(m);
    }
    dmn_calibrate_step(d);
    dmn_daemon_settle(d);
}

void dmn_daemon_settle(struct dmn_daemon *d)
{
    struct dmn_model *next;

    do {
        for (struct dmn_model *m = d->models; m; m = next) {
            next = m->next;
            dmn_model_after(m);
        }
        for (struct dmn_model *m = d->leaving; m; m = next) {
            next = m->next;
            dmn_model_after(m);
        }
    } while (dmn_control_settle(d));
    dmn_frames_settle(d);
    dmn_gpio_follow(d);
    dmn_drain_check(d);
}

void dmn_daemon_status(struct dmn_daemon *d)
{
    char text[sizeof(d->status_text)];
    size_t used;

    used = (size_t)snprintf(text, sizeof(text), "STATUS=%s:", dmn_daemon_state(d));
    for (const struct dmn_model *m = d->models; m && used < sizeof(text); m = m->next) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s %zu stage%s %.1f fps;",
                                 m->name, pl_current_plan(m->pipe)->stage_count,
                                 pl_current_plan(m->pipe)->stage_count == 1 ? "" : "s",
                                 dmn_model_fps(m, base_now_ns()));
    }
    if (strcmp(text, d->status_text) != 0) {
        memcpy(d->status_text, text, sizeof(text));
        dmn_notify(&d->notify, text);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;
    uint64_t now = base_now_ns();

    for (struct dmn_model *m = d->models; m; m = m->next) {
        dmn_model_tick(m, now);
    }
    dmn_watchdog_healthy(d);
    dmn_hotplug_check(d);
    dmn_frames_tick(d, now);
    if (d->ready && !d->draining) {
        dmn_daemon_status(d);
    }
    dmn_daemon_settle(d);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct dmn_daemon *d = signal->data;

    if (number == SIGHUP) {
        dmn_reload_begin(d, NULL);
    } else {
        dmn_drain_begin(d);
    }
}

static int init_loop(struct dmn_daemon *d)
{
    uv_timer_t *timers[] = {&d->tick, &d->watchdog, &d->drain, &d->retune};
    struct {
        uv_signal_t *handle;
        int number;
    } signals[] = {{&d->sighup, SIGHUP}, {&d->sigterm, SIGTERM}, {&d->sigint, SIGINT}};
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
    for (size_t i = 0; i < base_array_count(signals); i++) {
        uv_signal_init(&d->loop, signals[i].handle);
        signals[i].handle->data = d;
        uv_signal_start(signals[i].handle, on_signal, signals[i].number);
    }
    d->wake.data = d;
    return uv_async_init(&d->loop, &d->wake, on_wake);
}

static void load_models(struct dmn_daemon *d)
{
    for (size_t i = 0; i < d->config->model_count; i++) {
        const struct dmn_config_model *c = &d->config->models[i];
        struct dmn_load_source source = dmn_config_source(c);
        struct dmn_load *l = dmn_load_from(&source, d);
        char error[MDL_ERROR_MAX] = "out of memory";
        struct dmn_model *m = NULL;

        if (l) {
            l->from_config = true;
            for (size_t e = 0; e < d->eps.count; e++) { /* nothing serves yet */
                l->threads += d->eps.eps[e].cpu_count;
            }
            if (dmn_load_run(l) < 0) {
                memcpy(error, l->error, sizeof(error));
            } else {
                dmn_model_start(d, l, "start", error, &m);
            }
        }
        if (!m) {
            d->failed_models++;
            dmn_log_with(LOG_ERR,
                         (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED, .model = c->name},
                         "model %s from %s was refused: %s", c->name, c->path, error);
        }
        dmn_load_free(l);
    }
}

/* A socket that was passed in, or one of our own. */
static int socket_for(struct dmn_daemon *d, const char *name, int *fd, char *ret_path, size_t bytes)
{
    unsigned mode = (unsigned)strtoul(dmn_config_string(d->config, DMN_KEY_SOCKET_MODE), NULL, 8);

    ret_path[0] = '\0';
    if (*fd >= 0) {
        return 0;
    }
    snprintf(ret_path, bytes, "%s/%s.sock", d->runtime_dir, name);
    *fd = dmn_socket_listen(ret_path, mode, dmn_config_string(d->config, DMN_KEY_SOCKET_GROUP));
    if (*fd < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot listen on %s: %s", ret_path,
                     *fd == -EADDRINUSE ? "another program serves there"
                     : *fd == -ESRCH    ? "socket_group names no group"
                     : *fd == -EEXIST   ? "there is a file that is no socket"
                                        : strerror(-*fd));
        return *fd;
    }
    return 0;
}

static int start_sockets(struct dmn_daemon *d, int frames_fd, int control_fd)
{
    char frames_path[512], control_path[512];
    int error = socket_for(d, "frames", &frames_fd, frames_path, sizeof(frames_path));

    if (!error) {
        error = dmn_frames_start(d, frames_fd, frames_path[0] ? frames_path : NULL);
        frames_fd = -1;
    }
    if (!error) {
        error = socket_for(d, "control", &control_fd, control_path, sizeof(control_path));
    }
    if (!error) {
        error = dmn_control_start(d, control_fd, control_path[0] ? control_path : NULL);
        control_fd = -1;
    }
    base_close_fd(&frames_fd);
    base_close_fd(&control_fd);
    return error;
}

/* The folder of the sockets, ours alone. */
static int take_runtime_dir(struct dmn_daemon *d)
{
    int error;

    d->runtime_dir = dmn_runtime_dir(d->args->runtime_dir);
    if (!d->runtime_dir) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot use %s for the sockets: %s; name a folder by --runtime-dir",
                     d->args->runtime_dir ? d->args->runtime_dir
                                          : "/run/piped or $XDG_RUNTIME_DIR/piped",
                     strerror(errno));
        return DMN_EXIT_FAILED;
    }
    error = dmn_sockets_lock(d->runtime_dir, &d->lock_fd);
    if (error < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     error == -EADDRINUSE ? "%s: another piped serves there%s"
                                          : "%s/piped.lock: %s",
                     d->runtime_dir, error == -EADDRINUSE ? "" : strerror(-error));
        return DMN_EXIT_FAILED;
    }
    return 0;
}

int dmn_daemon_init(struct dmn_daemon *d, const struct dmn_args *args, struct dmn_config *config)
{
    char error_text[DMN_CONFIG_ERROR_MAX] = "out of memory";
    int frames_fd = -1, control_fd = -1, error;

    d->args = args;
    d->config = config;
    d->sysfs_root = args->sysfs_root ? args->sysfs_root : "/";
    d->started_ns = base_now_ns();
    d->lock_fd = d->frames.fd = -1;
    d->frames.daemon = d;
    d->topology = calloc(1, sizeof(*d->topology));
    signal(SIGPIPE, SIG_IGN);
    if (!d->topology || init_loop(d) < 0 ||
        dmn_history_init(&d->history, (size_t)dmn_config_int(config, DMN_KEY_HISTORY_EVENTS)) < 0) {
        dmn_log(LOG_ERR, "out of memory");
        return DMN_EXIT_FAILED;
    }
    if (dmn_service_sockets(&frames_fd, &control_fd) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "the sockets that were passed in are no listening Unix stream sockets");
        return DMN_EXIT_FAILED;
    }
    if (frames_fd < 0 || control_fd < 0) {
        error = take_runtime_dir(d);
        if (error) {
            base_close_fd(&frames_fd);
            base_close_fd(&control_fd);
            return error;
        }
    }
    d->state_dir = dmn_state_dir(args->state_dir);
    if (!d->state_dir) {
        dmn_log(LOG_WARNING, "no folder to keep plans in: they are forgotten at the end");
    }
    error = dmn_eps_read(config, d->sysfs_root, d->topology, error_text, &d->eps);
    if (error < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s",
                     error_text);
        error = DMN_EXIT_CONFIG;
    } else if (dmn_calibration_init(d) < 0) {
        dmn_log(LOG_ERR, "out of memory");
        error = DMN_EXIT_FAILED;
    } else if (dmn_hotplug_start(d) < 0) {
        dmn_log(LOG_ERR, "out of memory");
        error = DMN_EXIT_FAILED;
    } else {
        dmn_sensors_start(d); /* plans are kept for what they say */
        load_models(d);
        if (!d->models) {
            dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                         "not one model could be loaded");
            error = DMN_EXIT_CONFIG;
        }
    }
    if (error) {
        base_close_fd(&frames_fd);
        base_close_fd(&control_fd);
        return error;
    }
    return start_sockets(d, frames_fd, control_fd) < 0 ? DMN_EXIT_FAILED : 0;
}

void dmn_daemon_run(struct dmn_daemon *d)
{
    char cpus[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < d->eps.count && used < sizeof(cpus); i++) {
        char list[256];

        dmn_cpu_list_format(d->eps.eps[i].cpus, d->eps.eps[i].cpu_count, list, sizeof(list));
        used += (size_t)snprintf(cpus + used, sizeof(cpus) - used, "%s%s %s", i ? ", " : "",
                                 d->eps.eps[i].name, list);
    }
    uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    dmn_watchdog_start(d);
    dmn_gpio_start(d);
    if (dmn_adapt_start(d) < 0) {
        dmn_log(LOG_ERR, "out of memory: plans do not follow changes of the machine");
    }
    d->ready = true;
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_STARTED},
                 "piped %s serves %zu model%s in %s on cores %s (OpenBLAS %s)", PIPED_VERSION,
                 dmn_model_count(d), dmn_model_count(d) == 1 ? "" : "s",
                 d->runtime_dir ? d->runtime_dir : "sockets passed in", cpus, d->blas.core);
    dmn_notify(&d->notify, "READY=1");
    dmn_daemon_status(d);
    uv_run(&d->loop, UV_RUN_DEFAULT);
}

/* From here to the end of the process a repeated request to stop changes nothing: without its
 * handle it would kill the process in the middle of an end that is clean so far. */
static void ignore_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < base_array_count(numbers); i++) {
        sigaction(numbers[i], &ignore, NULL);
    }
}

/* Closes what is ours alone; connections and listeners close their own. */
static void close_handles(struct dmn_daemon *d)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&d->tick,   (uv_handle_t *)&d->watchdog, (uv_handle_t *)&d->drain,
        (uv_handle_t *)&d->retune, (uv_handle_t *)&d->sighup,   (uv_handle_t *)&d->sigterm,
        (uv_handle_t *)&d->sigint, (uv_handle_t *)&d->wake,
    };

    for (size_t i = 0; i < base_array_count(handles); i++) {
        uv_close(handles[i], NULL);
    }
    dmn_notify_deinit(&d->notify);
}

int dmn_daemon_deinit(struct dmn_daemon *d)
{
    int error = 0;

    d->draining = true;
    dmn_frames_stop_accepting(d);
    dmn_control_stop_accepting(d);
    dmn_loads_detach(d);
    dmn_remake_detach(d);
    dmn_reload_cancel(d);
    dmn_calibration_deinit(d);
    dmn_adapt_stop(d);
    dmn_gpio_stop(d);
    dmn_hotplug_stop(d);
    /* joins the teams: nobody touches a client's memory any more; the oldest go first, since what
     * they still compute may belong to streams that a reload moved to a newer model */
    while (d->leaving) {
        struct dmn_model *oldest = d->leaving;

        while (oldest->next) {
            oldest = oldest->next;
        }
        dmn_model_destroy(oldest);
    }
    while (d->models) {
        dmn_model_destroy(d->models);
    }
    dmn_sensors_stop(d);  /* until here models kept what they learned, for what these say */
    dmn_frames_settle(d); /* last answers */
    dmn_frames_close_all(d);
    dmn_control_close_all(d);
    if (d->has_loop) {
        close_handles(d);
        ignore_signals();
        uv_run(&d->loop, UV_RUN_DEFAULT);
        error = uv_loop_close(&d->loop);
        if (error) {
            dmn_log(LOG_ERR, "a handle was left open at the end");
        }
    }
    dmn_account_trim(&d->frames);
    dmn_history_deinit(&d->history);
    d->config = dmn_config_free(d->config);
    base_close_fd(&d->lock_fd);
    free(base_take(d->topology));
    free(base_take(d->runtime_dir));
    free(base_take(d->state_dir));
    return error;
}
