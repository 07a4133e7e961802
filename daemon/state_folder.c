/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory, and the lock that lets one daemon at a time write in it. A second daemon
 * serves all the same: it reads what is kept, and keeps nothing until the first has ended. */

#include "base/base.h"
#include "daemon/config/state_file.h"
#include "daemon/daemon.h"
#include "daemon/service/folders.h"
#include "daemon/service/log.h"

#define SAVED_LIST "(saved)" /* no model's name */

static void lock(struct dmn_daemon *d)
{
    pid_t holder;
    int before = d->state_lock_error, error = dmn_state_lock(d->state_dir, &holder);

    d->state_lock_error = error;
    if (error == before) {
        return;
    }
    if (error == -EADDRINUSE) {
        dmn_log(LOG_WARNING,
                "%s: another piped (process %d) keeps what it learns there; this one reads it, but "
                "keeps nothing until that one ends; --state-dir chooses another directory",
                d->state_dir, (int)holder);
    } else if (error < 0) {
        dmn_log(LOG_WARNING, "%s cannot be locked against a second piped: %s", d->state_dir,
                strerror(-error));
    } else {
        dmn_log(LOG_NOTICE, "%s is free: this piped keeps what it learns there from now on",
                d->state_dir);
    }
}

void dmn_state_folder_fault(const char *given, int error, char ret_text[DMN_CONFIG_ERROR_MAX])
{
    if (given) {
        snprintf(ret_text, DMN_CONFIG_ERROR_MAX,
                 "cannot use %.400s as the state directory: %s: plans are not kept, and saved "
                 "models are not served; --state-dir chooses another directory",
                 given, strerror(error));
    } else {
        snprintf(ret_text, DMN_CONFIG_ERROR_MAX,
                 "no state directory: plans are not kept, and saved models are not served; "
                 "--state-dir chooses one");
    }
}

void dmn_state_folder_take(struct dmn_daemon *d)
{
    d->state_dir = dmn_state_dir(d->args->state_dir, true);
    if (!d->state_dir) {
        char text[DMN_CONFIG_ERROR_MAX];

        dmn_state_folder_fault(d->args->state_dir, errno, text);
        dmn_log(LOG_WARNING, "%s", text);
    } else {
        lock(d);
        dmn_saved_tidy(d->state_dir);
    }
    d->models.state_dir = d->state_dir;
    if (d->config->saved_error) {
        char path[DMN_STATE_PATH_MAX];

        (void)dmn_state_file_path(DMN_STATE_SAVED, d->state_dir, "", "", path);
        (void)dmn_failed_add(&d->models.failed, SAVED_LIST, path, d->config->saved_error);
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED},
                     "cannot serve the saved models: %s", d->config->saved_error);
    }
}

void dmn_state_folder_tick(struct dmn_daemon *d)
{
    if (d->state_lock_error) {
        lock(d);
    }
}
