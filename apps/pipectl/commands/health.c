/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl health: an exit code for containers, units and scripts that wait. */
#include "apps/pipectl/common/pipectl.h"

#define LOOK_MS 100u  /* from one look to the next while it waits */
#define LEAST_MS 1000 /* for an answer, also at the end: a busy machine is no silent daemon */

/* @name: NULL: the first one */
static const json_t *named(const json_t *list, const char *name)
{
    return name ? json_text_find(list, "name", name) : json_array_get(list, 0);
}

/* @ret_hopeless: waiting helps no more. Return: whether @status is what was asked for; else
 * @ret_why says what is missing. */
static bool is_healthy(const json_t *status, const struct ctl_options *a, char *ret_why,
                       size_t bytes, bool *ret_hopeless)
{
    const json_t *models = json_object_get(status, "models");
    const json_t *failed = named(json_object_get(status, "failed_models"), a->model);
    const char *state = ctl_text(status, "state");

    *ret_why = '\0';
    *ret_hopeless = false;
    if (a->live) {
        return true;
    }
    if (strcmp(state, "draining") == 0) {
        snprintf(ret_why, bytes, "the daemon is stopping");
    } else if (failed) {
        *ret_hopeless = true;
        snprintf(ret_why, bytes, "model %s could not be loaded: %s", ctl_text(failed, "name"),
                 ctl_text(failed, "error"));
    } else if (!named(models, a->model)) {
        snprintf(ret_why, bytes, a->model ? "no model %s" : "no model is loaded", a->model);
    } else if (!a->model && strcmp(state, "degraded") == 0) {
        snprintf(ret_why, bytes, "the daemon is degraded; pipectl status says why");
    }
    return !*ret_why;
}

static void print(const struct ctl *ctl, const json_t *status, bool healthy, const char *why)
{
    if (ctl->json) {
        ctl_print_new(json_pack("{s:b, s:s, s:o}", "healthy", healthy, "state",
                                ctl_text(status, "state"), "why",
                                healthy ? json_null() : json_text_shown(why)));
    } else if (healthy) {
        shown_printf("%s\n", ctl_text(status, "state"));
    } else {
        ctl_say("not ready: %s", why);
    }
}

/* @last: say what is wrong; becomes true where another look would see the same, or would start a
 * service again that failed to start. Return: an exit code; CTL_FAILED: it answers and is not
 * ready. */
static int look(struct ctl *ctl, const struct ctl_options *a, bool *last)
{
    json_auto_t *status = NULL;
    char why[1024];
    bool healthy, hopeless;
    int rc;

    ctl->not_started = last;
    ctl->quiet = !*last; /* a daemon that is being started has no socket yet */
    rc = ctl_ask(ctl, "Status", json_object(), "status", &status);
    if (rc) {
        return rc;
    }
    healthy = is_healthy(status, a, why, sizeof(why), &hopeless);
    *last = *last || hopeless;
    if (healthy || *last) {
        print(ctl, status, healthy, why);
    }
    return healthy ? CTL_DONE : CTL_FAILED;
}

int ctl_health(const struct ctl *ctl, int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    struct ctl patient = *ctl;
    struct ctl_options a = {0};
    int rc = ctl_take_all(argc, argv, &a, NULL);
    uint64_t end_ns = base_now_ns() + (uint64_t)(a.wait_s * 1e9);

    if (rc) {
        return rc;
    }
    for (;;) {
        uint64_t now = base_now_ns();
        bool last = now >= end_ns;

        if (a.wait_s > 0 && ctl->timeout_ms == CTL_TIMEOUT_DEFAULT) {
            patient.timeout_ms =
                last ? LEAST_MS : base_max((int)((end_ns - now) / BASE_NS_PER_MS), LEAST_MS);
        }
        rc = look(&patient, &a, &last);
        if (rc == CTL_DONE || last) {
            return rc;
        }
        nanosleep(&pause, NULL);
    }
}
