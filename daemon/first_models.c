/* SPDX-License-Identifier: Apache-2.0 */
/* The first loads, before there are sockets and before the loop runs. They run on this thread, so a
 * request to stop reaches them in a signal handler: it calls off the load in work, and ends the
 * process where that has not noticed in time, since a library's call cannot be called off. */
#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"

#define PATIENCE_S 1u

/* Writer: the thread that loads. Any thread may run the handler, also one of a library: so no load
 * is freed before the handler is replaced. */
static _Atomic(struct dmn_load *) in_work;
static atomic_bool asked;

static void too_late(int number)
{
    _exit(DMN_EXIT_OK);
}

static void on_request(int number)
{
    struct dmn_load *l = atomic_load(&in_work);

    atomic_store(&asked, true);
    if (l) {
        atomic_store_explicit(&l->choose.stop, true, memory_order_relaxed);
    }
    alarm(PATIENCE_S);
}

void dmn_first_signals(void)
{
    static const struct {
        int number;
        void (*handler)(int);
    } signals[] = {{SIGTERM, on_request}, {SIGINT, on_request}, {SIGALRM, too_late}};

    for (size_t i = 0; i < base_array_count(signals); i++) {
        sigaction(signals[i].number,
                  &(struct sigaction){.sa_handler = signals[i].handler, .sa_flags = SA_RESTART},
                  NULL);
    }
}

/* Return: 0, with the model serving; -errno, with l->error and the key at fault. */
static int load(struct dmn_daemon *d, const struct dmn_config_model *c, struct dmn_load *l,
                const char **ret_key)
{
    char error[MDL_ERROR_MAX];
    struct dmn_model *m;
    int r;

    l->from_config = true;
    for (size_t e = 0; e < d->machine.eps.count; e++) { /* nothing serves yet */
        l->threads += d->machine.eps.eps[e].cpu_count;
    }
    atomic_store(&in_work, l);
    if (atomic_load(&asked)) {
        atomic_store_explicit(&l->choose.stop, true, memory_order_relaxed);
    }
    r = dmn_validate_load(c, &d->machine.eps, l, ret_key);
    atomic_store(&in_work, NULL);
    if (r == 0) {
        r = dmn_model_start(&d->models, l, DMN_CAUSE_START, error, &m);
        if (r < 0) {
            memcpy(l->error, error, sizeof(error));
        }
    }
    return r;
}

static void tell(struct dmn_daemon *d, const struct dmn_config_model *c, const char *key,
                 const char *error)
{
    char at[DMN_CONFIG_WHERE_MAX], which[DMN_CONFIG_WHERE_MAX + 128];

    (void)dmn_failed_add(&d->models.failed, c->name, c->path, error);
    dmn_config_where(d->config, c->origin, c->line, at);
    if (c->saved) {
        snprintf(which, sizeof(which), "pipectl models unload %s --save forgets it", c->name);
    } else {
        snprintf(which, sizeof(which), "%s: models[%s].%s", at, c->name, key);
    }
    dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED, .model = c->name},
                 "cannot serve model %s from %s: %s (%s)", c->name, c->path, error, which);
}

int dmn_first_models(struct dmn_daemon *d, uv_signal_cb on_signal)
{
    base_autofree struct dmn_load **loads =
        calloc(d->config->model_count + 1, sizeof(struct dmn_load *));

    if (!loads) {
        dmn_log(LOG_ERR, "out of memory");
        return DMN_EXIT_FAILED;
    }
    for (size_t i = 0; i < d->config->model_count && !atomic_load(&asked); i++) {
        const struct dmn_config_model *c = &d->config->models[i];
        struct dmn_load_source source = dmn_config_source(c);
        struct dmn_load *l = dmn_load_from(&source, &d->models);
        const char *key = "path";

        if ((!l || load(d, c, l, &key) < 0) && !atomic_load(&asked)) {
            tell(d, c, key, l ? l->error : "out of memory");
        }
        loads[i] = l;
    }
    /* replaces the handler, so that a request reaches one or the other */
    uv_signal_start(&d->sigterm, on_signal, SIGTERM);
    uv_signal_start(&d->sigint, on_signal, SIGINT);
    alarm(0);
    for (size_t i = 0; i < d->config->model_count; i++) {
        dmn_load_free(loads[i]);
    }
    if (atomic_load(&asked)) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_STOPPED},
                     "stopped before all models were loaded");
        d->asked_to_stop = true;
        return DMN_EXIT_FAILED;
    }
    if (!d->models.models) {
        const struct dmn_failed_model *first = STAILQ_FIRST(&d->models.failed);

        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "no model could be loaded%s%s%s%s", first ? "; " : "",
                     first ? first->name : "", first ? ": " : "", first ? first->error : "");
        return DMN_EXIT_CONFIG;
    }
    return 0;
}
