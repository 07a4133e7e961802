/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: why the service does not answer. */
#include "apps/pipectl/common/pipectl.h"

#define RUNTIME_DIR "/run/piped/"
#define SOCKETS "piped.socket piped-control.socket"
#define QUESTION                                                                                   \
    "systemctl show -p Id -p ActiveState -p Result -p StatusText -p NRestarts "                    \
    "piped.service " SOCKETS " 2>/dev/null"
#define AGAIN                                                                                      \
    "then sudo systemctl reset-failed piped.service " SOCKETS                                      \
    "; sudo systemctl enable --now " SOCKETS

struct unit {
    char id[64], active[32], result[64], status[512], restarts[16];
};

/* Reads "KEY=VALUE" lines up to an empty one. Return: what follows; NULL: there was no more. */
static const char *read_unit(const char *at, struct unit *u)
{
    *u = (struct unit){.id = ""};
    while (*at == '\n') {
        at++;
    }
    if (!*at) {
        return NULL;
    }
    while (*at && *at != '\n') {
        const struct {
            const char *key;
            char *to;
            size_t bytes;
        } keys[] = {{"Id=", u->id, sizeof(u->id)},
                    {"ActiveState=", u->active, sizeof(u->active)},
                    {"Result=", u->result, sizeof(u->result)},
                    {"StatusText=", u->status, sizeof(u->status)},
                    {"NRestarts=", u->restarts, sizeof(u->restarts)}};
        size_t n = strcspn(at, "\n");

        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
            size_t k = strlen(keys[i].key);

            if (n >= k && strncmp(at, keys[i].key, k) == 0) {
                snprintf(keys[i].to, keys[i].bytes, "%.*s", (int)(n - k), at + k);
            }
        }
        at += n + (at[n] == '\n');
    }
    return at;
}

static bool is_down(const struct unit *socket)
{
    return socket->active[0] && strcmp(socket->active, "active") != 0;
}

bool ctl_service_words(const char *shown, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next)
{
    struct unit service = {.id = ""}, socket = {.id = ""}, u;

    while ((shown = read_unit(shown, &u))) {
        if (strcmp(u.id, "piped.service") == 0) {
            service = u;
        } else if (strcmp(socket.active, "failed") != 0) {
            socket = u; /* the first that failed, else the last */
        }
    }
    if (strcmp(service.active, "failed") == 0) {
        bool told = service.status[0];

        snprintf(ret, CTL_SERVICE_TEXT_MAX, "the service failed (%s)%s%s%s", service.result,
                 told ? ": " : "", service.status, told ? "" : "; journalctl -u piped says more");
    } else if (is_down(&socket)) {
        snprintf(ret, CTL_SERVICE_TEXT_MAX, "%s is %s", socket.id, socket.active);
    } else if (strcmp(service.active, "activating") == 0 && strtoul(service.restarts, NULL, 10)) {
        snprintf(ret, CTL_SERVICE_TEXT_MAX,
                 "the service failed and starts again, restart %s%s%s; journalctl -u piped says "
                 "more",
                 service.restarts, service.status[0] ? ": " : "", service.status);
    } else {
        return false;
    }
    *ret_next = is_down(&socket) ? AGAIN : NULL;
    return true;
}

bool ctl_service_state(const char *socket, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next)
{
    char shown[4096];
    size_t n;
    FILE *f;

    if (strncmp(socket, RUNTIME_DIR, strlen(RUNTIME_DIR)) != 0 ||
        access("/run/systemd/system", F_OK) < 0) {
        return false;
    }
    f = popen(QUESTION, "re"); /* NOLINT(cert-env33-c): a constant command */
    if (!f) {
        return false;
    }
    n = fread(shown, 1, sizeof(shown) - 1, f);
    shown[n] = '\0';
    pclose(f);
    return ctl_service_words(shown, ret, ret_next);
}
