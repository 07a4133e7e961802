/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/service_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RUNTIME_DIR "/run/piped/"
#define SOCKETS "piped.socket piped-control.socket"
#define QUESTION                                                                                   \
    "systemctl show -p Id -p ActiveState -p Result -p StatusText piped.service " SOCKETS           \
    " 2>/dev/null"

struct unit {
    char id[64], active[32], result[64], status[512];
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
                    {"StatusText=", u->status, sizeof(u->status)}};
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

bool ctl_service_words(const char *shown, char ret[CTL_SERVICE_TEXT_MAX])
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
    } else if (socket.active[0] && strcmp(socket.active, "active") != 0) {
        snprintf(ret, CTL_SERVICE_TEXT_MAX, "%s is %s", socket.id, socket.active);
    } else {
        return false;
    }
    if (socket.active[0] && strcmp(socket.active, "active") != 0) {
        size_t n = strlen(ret);

        snprintf(ret + n, CTL_SERVICE_TEXT_MAX - n,
                 "\nthen sudo systemctl reset-failed piped.service " SOCKETS
                 "; sudo systemctl enable --now " SOCKETS);
    }
    return true;
}

bool ctl_service_state(const char *socket, char ret[CTL_SERVICE_TEXT_MAX])
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
    return ctl_service_words(shown, ret);
}
