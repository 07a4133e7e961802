/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/control.h"

#include <pthread.h>

#include "apps/show/fold_segments.h"
#include "base/base.h"
#include "ipc/control/control_client.h"

#define EVENTS 20 /* decisions that the status page shows */

struct kept {
    json_t *reply; /* owned; NULL: it failed */
    int rc;
    uint64_t at_ns; /* 0: never asked */
    char why[WEB_WHY_BYTES];
};

struct web_control {
    const char *path;
    pthread_mutex_t lock; /* of all below, and of being connected */
    struct kept kept[WEB_QUESTIONS];
};

struct web_control *web_control_new(const char *path)
{
    struct web_control *c = calloc(1, sizeof(*c));

    if (c) {
        c->path = path;
        pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

struct web_control *web_control_free(struct web_control *c)
{
    if (c) {
        for (size_t i = 0; i < WEB_QUESTIONS; i++) {
            json_decref(c->kept[i].reply);
        }
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

static int fail(int rc, char why[WEB_WHY_BYTES], const char *path, const char *text)
{
    snprintf(why, WEB_WHY_BYTES, "piped is not reachable at %s: %s", path, text);
    return rc;
}

/* Takes the reference @parameters. */
static int call(const char *path, const char *method, json_t *parameters, json_t **ret,
                char why[WEB_WHY_BYTES])
{
    uint64_t end_ns = base_now_ns() + WEB_QUESTION_MS * BASE_NS_PER_MS;
    base_cleanup(ipc_control_close) struct ipc_control conn = IPC_CONTROL_NULL;
    struct ipc_control_reply r;
    int rc = ipc_control_connect(&conn, path, false);

    rc = rc < 0 ? rc : ipc_control_call(&conn, method, parameters, false, NULL, 0);
    rc = rc < 0 ? rc : ipc_control_wait(&conn, end_ns, -1, &r);
    json_decref(parameters);
    if (rc) {
        return fail(rc < 0 ? rc : -EPROTO, why, path,
                    rc == IPC_CONTROL_E_LATE ? "it has not answered for 5 s"
                                             : ipc_control_reason(rc));
    }
    if (r.error) {
        ipc_varlink_error_text(r.error, r.parameters, why, WEB_WHY_BYTES);
        rc = -EREMOTEIO;
    } else {
        *ret = json_incref(r.parameters);
        rc = *ret ? 0 : fail(-EPROTO, why, path, "its answer is empty");
    }
    json_decref(r.message);
    return rc;
}

int web_ask(struct web_control *c, enum web_question q, json_t **ret, char ret_why[WEB_WHY_BYTES])
{
    static const char *const methods[] = {"io.piped.Status", "io.piped.Models", "io.piped.History",
                                          "io.piped.Metrics"};
    struct kept *k = &c->kept[q];
    int rc;

    pthread_mutex_lock(&c->lock);
    if (k->at_ns == 0 || base_now_ns() - k->at_ns >= WEB_FRESH_MS * BASE_NS_PER_MS) {
        json_t *reply = NULL;

        k->rc = call(c->path, methods[q],
                     q == WEB_HISTORY ? json_pack("{s:i}", "limit", EVENTS) : json_object(), &reply,
                     k->why);
        if (q == WEB_STATUS && k->rc == 0) { /* before others see it */
            shw_fold_segments(json_object_get(reply, "status"));
        }
        json_decref(k->reply);
        k->reply = reply;
        k->at_ns = base_now_ns();
    }
    rc = k->rc;
    if (rc == 0) {
        /* Many threads read it at once, which jansson allows; its reference counts are atomic. */
        *ret = json_incref(k->reply);
    } else {
        snprintf(ret_why, WEB_WHY_BYTES, "%s", k->why);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int web_ask_units(struct web_control *c, const char *model, json_t **ret,
                  char ret_why[WEB_WHY_BYTES])
{
    int rc;

    pthread_mutex_lock(&c->lock);
    rc = call(c->path, "io.piped.Units", json_pack("{s:s}", "model", model), ret, ret_why);
    pthread_mutex_unlock(&c->lock);
    return rc;
}
