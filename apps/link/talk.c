/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: reports to the daemon, and routes from it. */
#include "apps/link/common/daemon_call.h"
#include "apps/link/common/link.h"
#include "apps/link/front/server.h"
#include "apps/link/route/route.h"
#include "base/base.h"
#include "ipc/varlink.h"

#define REPORT_NS (1 * BASE_NS_PER_S)
#define REPORT_BYTES (IPC_VARLINK_MESSAGE_MAX - 4096u) /* the rest of a message is shorter */
#define REFUSED_NS (10 * BASE_NS_PER_S) /* a daemon that knows no boards, or does not let us */

struct talk {
    struct link *link;
    struct daemon_conn reports, routes;
    unsigned asked; /* the connection of @routes that was asked */
    bool waits;     /* for the answer to a report */
    bool complained;
    uint64_t report_ns; /* the next report is due then */
    uint64_t not_before_ns;
    uint64_t ask_ns; /* routes are not asked for before */
    struct brd_routes routes_now;
    bool not_all;    /* some of them could not be set for lack of memory or places */
    uint64_t set_ns; /* they are tried again then */
};

struct talk *talk_new(struct link *l)
{
    struct talk *t = calloc(1, sizeof(*t));

    if (t) {
        t->link = l;
        daemon_conn_init(&t->reports, l->control_path);
        daemon_conn_init(&t->routes, l->control_path);
    }
    return t;
}

struct talk *talk_free(struct talk *t)
{
    if (t) {
        daemon_conn_deinit(&t->reports);
        daemon_conn_deinit(&t->routes);
        free(t);
    }
    return NULL;
}

size_t talk_poll(const struct talk *t, struct pollfd ret[2])
{
    ret[0] = daemon_conn_poll(&t->reports);
    ret[1] = daemon_conn_poll(&t->routes);
    return 2;
}

static void complain(struct talk *t, const char *method, const char *error,
                     const json_t *parameters)
{
    char text[640];

    if (!t->complained && strcmp(error, IPC_VARLINK_NOT_STARTED) == 0) {
        ipc_varlink_error_text(error, parameters, text, sizeof(text));
        link_log("%s; no model is spread", text);
    } else if (!t->complained) {
        ipc_varlink_error_text(error, parameters, text, sizeof(text));
        link_log("the daemon refuses %s: %s; no model is spread", method, text);
    }
    t->complained = true;
}

static void report_came(void *arg, const char *error, const json_t *parameters)
{
    struct talk *t = arg;

    t->waits = false;
    if (error && *error) {
        complain(t, "LinkReport", error, parameters);
        t->not_before_ns = base_now_ns() + REFUSED_NS;
    }
}

static void set_routes(struct talk *t)
{
    bool before = t->not_all;

    if (t->link->front) {
        front_models(t->link->front, &t->routes_now);
        t->not_all = !route_set(t->link, &t->routes_now);
        t->set_ns = base_now_ns() + REPORT_NS;
    }
    if (t->not_all && !before) {
        link_log("there is no memory or place for all routes now; they are tried again");
    }
}

static void routes_came(void *arg, const char *error, const json_t *parameters)
{
    struct talk *t = arg;

    if (error) {
        if (*error) {
            complain(t, "LinkRoutes", error, parameters);
            t->asked = 0; /* no more replies come */
            t->ask_ns = base_now_ns() + REFUSED_NS;
        }
        return;
    }
    if (brd_routes_read(json_object_get(parameters, "routes"), &t->routes_now) != 0) {
        link_log("the daemon's routes cannot be read; they are ignored");
        t->not_all = false;
        return;
    }
    t->complained = false;
    set_routes(t);
}

/* States of the others are borrowed. */
static json_t *make_report(const struct link *l)
{
    base_autofree struct brd_link_report_all *r = calloc(1, sizeof(*r));

    if (!r) {
        return NULL;
    }
    r->self = *own_state(l->own_state);
    r->board_count = l->boards.count;
    for (size_t i = 0; i < l->boards.count; i++) {
        r->board[i] = l->peer[i].state;
        r->board[i].up = l->peer[i].joined;
        memcpy(r->board[i].print, l->peer[i].print, sizeof(r->board[i].print));
        memcpy(r->board[i].name, l->boards.board[i].name, sizeof(r->board[i].name));
    }
    r->route_count = route_states(l, r->route);
    return brd_report_all_json_within(r, REPORT_BYTES);
}

void talk_go(struct link *l, uint64_t now_ns)
{
    struct talk *t = l->talk;
    unsigned ups;

    daemon_conn_go(&t->routes, now_ns);
    daemon_conn_go(&t->reports, now_ns);
    ups = daemon_conn_up(&t->routes);
    if (ups && ups != t->asked && now_ns >= t->ask_ns &&
        daemon_conn_call(&t->routes, "io.piped.LinkRoutes", NULL, true, routes_came, t) == 0) {
        t->asked = ups;
    }
    if (t->not_all && now_ns >= t->set_ns) {
        set_routes(t);
    }
    if (!t->waits && now_ns >= t->not_before_ns && (l->news || now_ns >= t->report_ns) &&
        daemon_conn_up(&t->reports)) {
        json_t *report = make_report(l);

        t->waits = report && daemon_conn_call(&t->reports, "io.piped.LinkReport",
                                              json_pack("{s:o}", "report", report), false,
                                              report_came, t) == 0;
        l->news = false;
        t->report_ns = now_ns + REPORT_NS;
    }
}
