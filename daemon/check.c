/* SPDX-License-Identifier: Apache-2.0 */
/* A check goes the way of a start, but without sockets and without keeping anything. The models are
 * started and ended one after another, so that a small board has memory for it while it serves. */

#include "base/base.h"
#include "base/cli/cli.h"
#include "daemon/config/keys.h"
#include "daemon/daemon.h"
#include "daemon/service/folders.h"
#include "daemon/service/log.h"
#include "governor/gpio.h"
#include "ipc/listen.h"

static bool check_model(struct dmn_daemon *d, const struct dmn_config_model *m)
{
    struct dmn_load_source source = dmn_config_source(m);
    struct dmn_load *l = dmn_load_from(&source, &d->models);
    char error[DMN_CONFIG_ERROR_MAX] = "out of memory", why[MDL_ERROR_MAX] = "";
    struct dmn_model *started = NULL;
    const char *key = "path";

    if (l) {
        l->choose.ms = 0;
        if (dmn_validate_load(m, &d->machine.eps, l, &key) < 0 ||
            dmn_model_start(&d->models, l, DMN_CAUSE_START, why, &started) < 0) {
            dmn_validate_fault(d->config, m, key, why[0] ? why : l->error, error);
        }
    }
    if (started) {
        shown_printf("model %s: %zu unit%s, %.1f MB of weights, %.1f MB per frame\n", m->name,
                     started->model->unit_count, base_plural(started->model->unit_count),
                     (double)started->model->weight_bytes / 1e6,
                     (double)started->model->arena_bytes / 1e6);
        dmn_model_destroy(started);
    } else {
        shown_say("piped", "%s", error);
    }
    dmn_load_free(l);
    return started != NULL;
}

static void warn(const struct dmn_config *c, enum dmn_config_id key, const char *why)
{
    char at[DMN_CONFIG_WHERE_MAX];

    dmn_config_where(c, c->values[key].origin, c->values[key].line, at);
    shown_say("piped", "warning: %s: %s: \"%s\": %s", at, dmn_config_rows[key].key,
              dmn_config_string(c, key), why);
}

/* What a start serves without, and its log tells. */
static void check_doubts(const struct dmn_config *c)
{
    struct gov_gpio_config gpio = {.chip = dmn_config_string(c, DMN_KEY_GPIO_CHIP),
                                   .lines = {{-1}, {-1}, {-1}}};
    const char *group = dmn_config_string(c, DMN_KEY_ADMIN_GROUP);
    struct gov_gpio *chip = NULL;
    char text[DMN_CONFIG_ERROR_MAX];
    gid_t unused;

    dmn_validate_doubt(c, text);
    if (text[0]) {
        shown_say("piped", "warning: %s", text);
    }
    if (group[0] && ipc_group_find(group, &unused) == -ESRCH) {
        warn(c, DMN_KEY_ADMIN_GROUP,
             "no such group; until it is made, only root and the daemon's own user may change "
             "anything");
    }
    if (gpio.chip[0]) {
        int error = gov_gpio_open(&gpio, &chip);

        if (error) {
            warn(c, DMN_KEY_GPIO_CHIP, gov_gpio_outcome(error));
        }
        gov_gpio_close(chip);
    }
}

static bool check(struct dmn_daemon *d)
{
    char error[DMN_CONFIG_ERROR_MAX] = "out of memory";
    bool good = true;

    d->state_dir = dmn_state_dir(d->args->state_dir, false);
    if (!d->state_dir && d->args->state_dir && errno != ENOENT) { /* a start makes it */
        dmn_state_folder_fault(d->args->state_dir, errno, error);
        shown_say("piped", "warning: %s", error);
    }
    if (dmn_config_from_args(d->args, d->state_dir, error, &d->config) < 0 ||
        dmn_validate(&d->machine, true, error, &d->socket_group) < 0 ||
        dmn_plans_start(&d->plans) < 0) {
        shown_say("piped", "%s", error);
        return false;
    }
    if (d->config->saved_error) {
        shown_say("piped", "%s", d->config->saved_error);
        good = false;
    }
    for (size_t i = 0; i < d->config->model_count; i++) {
        good &= check_model(d, &d->config->models[i]);
    }
    check_doubts(d->config);
    return good;
}

int dmn_check_config(const struct dmn_args *args)
{
    base_autofree struct dmn_daemon *d = calloc(1, sizeof(*d));
    bool good;

    if (!d) {
        shown_say("piped", "out of memory");
        return DMN_EXIT_FAILED;
    }
    if (!args->verbose) {
        dmn_log_level(LOG_WARNING);
    }
    d->args = args;
    d->lock_fd = -1;
    dmn_wire(d);
    if (dmn_daemon_loop(d) < 0) {
        shown_say("piped", "out of memory");
        return DMN_EXIT_FAILED;
    }
    good = check(d);
    dmn_daemon_deinit(d);
    return good ? DMN_EXIT_OK : DMN_EXIT_CONFIG;
}
