/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: questions to the daemon's control socket. */
#include "apps/http/web.h"
#include "apps/show/fold_segments.h"
#include "base/json_text.h"
#include "ipc/control/control_client.h"

#define WHY_BYTES 640u
#define EVENTS 20 /* decisions that the status page shows */

struct kept {
    json_t *reply;  /* owned; NULL: it failed */
    uint64_t at_ns; /* 0: never asked */
    char why[WHY_BYTES];
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

static void fail(char why[WHY_BYTES], const char *path, const char *text)
{
    snprintf(why, WHY_BYTES, "piped is not reachable at %s: %s", path, text);
}

/* Takes the reference @parameters. @ret: left as it is where @why says why. */
static void call(const char *path, const char *method, json_t *parameters, json_t **ret,
                 char why[WHY_BYTES])
{
    uint64_t end_ns = base_now_ns() + WEB_QUESTION_MS * BASE_NS_PER_MS;
    base_cleanup(ipc_control_close) struct ipc_control conn = IPC_CONTROL_NULL;
    struct ipc_control_reply r;
    int rc = ipc_control_connect(&conn, path, false);

    rc = rc < 0 ? rc : ipc_control_call(&conn, method, parameters, false, NULL, 0);
    rc = rc < 0 ? rc : ipc_control_wait(&conn, end_ns, -1, &r);
    json_decref(parameters);
    if (rc) {
        fail(why, path,
             rc == IPC_CONTROL_E_LATE ? "it has not answered for 5 s" : ipc_control_reason(rc));
        return;
    }
    if (r.error) {
        ipc_varlink_error_text(r.error, r.parameters, why, WHY_BYTES);
    } else if (!r.parameters) {
        fail(why, path, "its answer is empty");
    } else {
        *ret = json_incref(r.parameters);
    }
    json_decref(r.message);
}

json_t *web_ask(struct web_control *c, enum web_question q, struct web_reply *r)
{
    static const char *const methods[] = {"io.piped.Status", "io.piped.Models", "io.piped.History",
                                          "io.piped.Metrics"};
    struct kept *k = &c->kept[q];
    web_locked(&c->lock);

    if (k->at_ns == 0 || base_now_ns() - k->at_ns >= WEB_FRESH_MS * BASE_NS_PER_MS) {
        json_decref(base_take(k->reply));
        call(c->path, methods[q],
             q == WEB_HISTORY ? json_pack("{s:i}", "limit", EVENTS) : json_object(), &k->reply,
             k->why);
        if (q == WEB_STATUS) { /* before others see it */
            shw_fold_segments(json_object_get(k->reply, "status"));
        }
        k->at_ns = base_now_ns();
    }
    if (!k->reply && r) {
        web_fail(r, 503, "%s", k->why);
    }
    /* Many threads read it at once, which jansson allows; its reference counts are atomic. */
    return json_incref(k->reply);
}

json_t *web_ask_units(struct web_control *c, const char *model)
{
    char why[WHY_BYTES];
    json_t *reply = NULL;
    web_locked(&c->lock);

    call(c->path, "io.piped.Units", json_pack("{s:s}", "model", model), &reply, why);
    return reply;
}
