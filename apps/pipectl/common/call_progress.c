/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: how far a call is, on a line of the terminal. */
#include <sys/ioctl.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/shown_text.h"
#include "ipc/control/control_client.h"

#define LINE_BYTES 512u
#define COLUMNS 80u
#define WIPE "\r\033[K"

static bool there;

void ctl_line_show(char *text)
{
    size_t most = COLUMNS, seen = 0, at = 0;
    struct winsize w;

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1) {
        most = w.ws_col;
    }
    shown_clean(text, "");
    /* as many characters as fit before the terminal would wrap the line */
    while (text[at] && seen + 1 < most) {
        seen++;
        for (at++; (text[at] & 0xc0) == 0x80; at++) {
        }
    }
    fprintf(stderr, WIPE "%.*s", (int)at, text);
    fflush(stderr);
    there = true;
}

void ctl_line_wipe(void)
{
    if (there) {
        fputs(WIPE, stderr);
        there = false;
    }
}

struct ctl_progress {
    struct ipc_control conn;
    char model[128]; /* "": that of the call is not known */
};

static void subscribe(struct ctl_progress *p, const struct ctl *ctl)
{
    p->conn = IPC_CONTROL_NULL;
    if (ipc_control_connect(&p->conn, ctl->control_path, true) < 0 ||
        ipc_control_call(&p->conn, "io.piped.Subscribe", NULL, true, NULL, 0) < 0) {
        ipc_control_close(&p->conn);
    }
}

struct ctl_progress *ctl_progress_new(const struct ctl *ctl, const json_t *parameters)
{
    struct ctl_progress *p = isatty(STDERR_FILENO) ? calloc(1, sizeof(*p)) : NULL;
    const char *model = json_text_of(parameters, "model");

    if (p) {
        snprintf(p->model, sizeof(p->model), "%s",
                 *model ? model : json_text_of(parameters, "name"));
        subscribe(p, ctl);
    }
    return p;
}

struct ctl_progress *ctl_progress_free(struct ctl_progress *p)
{
    if (p) {
        ctl_line_wipe();
        ipc_control_close(&p->conn);
        free(p);
    }
    return NULL;
}

int ctl_progress_fd(const struct ctl_progress *p)
{
    return p ? p->conn.fd : -1;
}

static void show(struct ctl_progress *p, const json_t *e)
{
    const char *event = ctl_text(e, "event"), *model = json_text_of(e, "model");
    char text[LINE_BYTES];

    if (*model && *p->model && strcmp(model, p->model) != 0) {
        return;
    }
    snprintf(text, sizeof(text), "%.128s%s", model, *model ? ": " : "");
    if (strcmp(event, "progress") == 0) {
        double of = ctl_real(e, "of");

        base_append(text, sizeof(text), "%.200s", ctl_text(e, "doing"));
        if (of > 0) {
            base_append(text, sizeof(text), ", %.0f of %.0f", ctl_real(e, "done"), of);
        }
        ctl_line_show(text);
    } else if (strcmp(event, "trial") == 0) {
        base_append(text, sizeof(text), "tried %.250s, %.3f ms a frame", ctl_text(e, "plan"),
                    ctl_real(e, "bottleneck_ms"));
        ctl_line_show(text);
    }
}

void ctl_progress_show(struct ctl_progress *p)
{
    struct ipc_control_reply r;
    int rc;

    ipc_control_go(&p->conn);
    while ((rc = ipc_control_next(&p->conn, &r)) == 0) {
        show(p, json_object_get(r.parameters, "event"));
        json_decref(r.message);
    }
    if (rc != IPC_CONTROL_E_NONE) {
        ipc_control_close(&p->conn);
    }
}
