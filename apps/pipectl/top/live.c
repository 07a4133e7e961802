/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top in a terminal: asks the daemon every interval, draws, and reads keys. */
#include <poll.h>
#include <signal.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/top/top.h"
#include "apps/show/fold_segments.h"
#include "ipc/control/control_client.h"

#define EVENTS 20                       /* decisions that are asked for */
#define RETRY_NS BASE_NS_PER_S          /* to reach a daemon that is away */
#define START_NS (10 * BASE_NS_PER_S)   /* to start one that fails to start */
#define SILENT_NS (3 * BASE_NS_PER_S)   /* an answer is late */
#define EXPLAIN_NS (30 * BASE_NS_PER_S) /* until a route is explained again */

/* A connection, made at the first call and again after it was lost. */
struct feed {
    struct ipc_control conn;
    size_t expected;      /* replies that have not come */
    uint64_t asked_at_ns; /* when the oldest of them was last waited for */
};

struct live {
    const struct ctl *ctl;
    struct top top;
    struct top_view view;
    struct top_screen screen;
    struct feed feed, explain;            /* a search for a route must not hold up the others */
    char asked[4][16];                    /* methods whose replies will come, oldest first */
    json_t *events, *units, *explanation; /* owned */
    char *model, *units_of, *explained;   /* owned: names */
    char notice[600];
    uint64_t interval_ns, next_ns, explained_at_ns;
    bool paused, ended, ascii;
};

static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    signalled = number;
}

static void set_text(char **to, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    free(*to);
    *to = copy;
}

static void set_json(json_t **to, json_t *value)
{
    json_decref(*to);
    *to = json_incref(value);
}

/* ---- the daemon ---- */

static void feed_close(struct feed *f)
{
    ipc_control_close(&f->conn);
    f->expected = 0;
}

/* Calls io.piped.METHOD. Takes the reference @parameters. Return: 0; -errno: no reply will come to
 * any call. */
static int feed_ask(struct feed *f, const char *path, const char *method, json_t *parameters,
                    uint64_t now_ns)
{
    int r = f->conn.fd < 0 ? ipc_control_connect(&f->conn, path, false) : 0;
    char name[128];

    snprintf(name, sizeof(name), "io.piped.%s", method);
    r = r < 0 ? r : ipc_control_call(&f->conn, name, parameters, false, NULL, 0);
    json_decref(parameters);
    if (r < 0) {
        feed_close(f);
        return r;
    }
    f->asked_at_ns = f->expected++ == 0 ? now_ns : f->asked_at_ns;
    return 0;
}

/* The next reply. Return: as ipc_control_next(), IPC_CONTROL_E_NONE also while not connected. */
static int feed_next(struct feed *f, uint64_t now_ns, struct ipc_control_reply *ret)
{
    int r = ipc_control_next(&f->conn, ret);

    if (r == IPC_CONTROL_E_NONE) {
        ipc_control_go(&f->conn);
        r = ipc_control_next(&f->conn, ret);
    }
    if (r == 0 && f->expected == 0) {
        json_decref(ret->message);
        return IPC_CONTROL_E_BAD; /* nobody asked */
    }
    if (r == 0) {
        f->expected--;
        f->asked_at_ns = now_ns;
    }
    return f->conn.fd < 0 ? IPC_CONTROL_E_NONE : r;
}

/* @not_started: why the service failed to start; NULL: @rc of feed_ask() or feed_next() says it. */
static void away(struct live *l, int rc, const struct ipc_control_reply *not_started,
                 uint64_t now_ns)
{
    bool closed = rc == IPC_CONTROL_E_CLOSED || rc == -ECONNRESET;
    size_t n = sizeof("waits: ") - 1;

    feed_close(&l->feed);
    feed_close(&l->explain);
    if (not_started) {
        l->next_ns = now_ns + START_NS;
        strcpy(l->notice, "waits: ");
        ipc_varlink_error_text(not_started->error, not_started->parameters, l->notice + n,
                               sizeof(l->notice) - n);
        return;
    }
    l->next_ns = now_ns + base_min(l->interval_ns, RETRY_NS);
    snprintf(l->notice, sizeof(l->notice), "waits: %s at %s",
             closed ? "the connection was closed" : ipc_control_reason(rc), l->ctl->control_path);
}

static void ask(struct live *l, const char *method, json_t *parameters, uint64_t now_ns)
{
    size_t at = l->feed.expected;
    int r = -ENOBUFS;

    if (at < base_array_count(l->asked)) {
        r = feed_ask(&l->feed, l->ctl->control_path, method, parameters, now_ns);
    } else {
        json_decref(parameters);
    }
    if (r < 0) {
        away(l, r, NULL, now_ns);
    } else {
        snprintf(l->asked[at], sizeof(l->asked[at]), "%s", method);
    }
}

/* What the planner expects of a route is asked for when the route is new, and now and then. */
static void ask_explain(struct live *l, uint64_t now_ns)
{
    const json_t *model = l->model ? top_status_of(&l->top, l->model) : NULL;
    const json_t *route = json_object_get(model, "route");
    double number = ctl_value(route, "number");
    bool known = l->explained && l->model && strcmp(l->explained, l->model) == 0 &&
                 number == ctl_value(l->explanation, "boards.number");

    if (!(number > 0) || l->explain.expected > 0 ||
        now_ns - l->explained_at_ns < (known ? EXPLAIN_NS : 2 * BASE_NS_PER_S)) {
        return;
    }
    if (feed_ask(&l->explain, l->ctl->control_path, "PlanExplain", ctl_model_parameter(l->model),
                 now_ns) == 0) {
        set_text(&l->explained, l->model);
    }
    l->explained_at_ns = now_ns;
}

static void ask_all(struct live *l, uint64_t now_ns)
{
    json_t *limit = json_pack("{s:i}", "limit", EVENTS);

    l->next_ns = now_ns + l->interval_ns;
    ask(l, "Status", json_object(), now_ns);
    if (l->feed.conn.fd < 0) {
        json_decref(limit);
        return;
    }
    ask(l, "History", limit, now_ns);
    if (l->feed.conn.fd >= 0 && l->view.page == TOP_PAGE_UNITS && l->model) {
        if (!l->units_of || strcmp(l->units_of, l->model) != 0) {
            set_json(&l->units, NULL);
        }
        set_text(&l->units_of, l->model);
        ask(l, "Units", ctl_model_parameter(l->model), now_ns);
    }
    ask_explain(l, now_ns);
}

/* The model that is shown: the same as before if it is there, else the first one. */
static void choose_model(struct live *l)
{
    const json_t *models = json_object_get(l->top.status, "models");

    if (json_array_size(models) > 0 && (!l->model || !top_status_of(&l->top, l->model))) {
        set_text(&l->model, ctl_text(json_array_get(models, 0), "name"));
    }
}

/* @reply: NULL: an error. */
static void take_reply(struct live *l, json_t *reply, uint64_t now_ns)
{
    char method[sizeof(l->asked[0])];

    memcpy(method, l->asked[0], sizeof(method));
    memmove(l->asked[0], l->asked[1], sizeof(l->asked) - sizeof(l->asked[0]));
    if (strcmp(method, "Status") == 0 && json_object_get(reply, "status")) {
        shw_fold_segments(json_object_get(reply, "status"));
        top_take(&l->top, json_object_get(reply, "status"), now_ns);
        l->notice[0] = '\0';
        choose_model(l);
    } else if (strcmp(method, "History") == 0) {
        set_json(&l->events, json_object_get(reply, "events"));
    } else if (strcmp(method, "Units") == 0) {
        set_json(&l->units, json_object_get(reply, "units"));
    }
}

/* Return: true if something new came. */
static bool read_daemon(struct live *l, uint64_t now_ns)
{
    bool asking = l->feed.expected > 0;
    struct ipc_control_reply r;
    int rc;

    while ((rc = feed_next(&l->feed, now_ns, &r)) == 0) {
        if (r.error && strcmp(r.error, IPC_VARLINK_NOT_STARTED) == 0) {
            away(l, 0, &r, now_ns);
        } else {
            take_reply(l, r.error ? NULL : r.parameters, now_ns);
        }
        json_decref(r.message);
    }
    if (rc != IPC_CONTROL_E_NONE) {
        away(l, rc, NULL, now_ns);
        return true;
    }
    rc = feed_next(&l->explain, now_ns, &r);
    if (rc == 0) {
        set_json(&l->explanation, json_object_get(r.error ? NULL : r.parameters, "explanation"));
        json_decref(r.message);
        return true;
    }
    if (rc != IPC_CONTROL_E_NONE) {
        feed_close(&l->explain);
    }
    return asking && l->feed.expected == 0;
}

/* ---- keys ---- */

static void step_model(struct live *l, int by)
{
    json_auto_t *models =
        top_sorted(json_object_get(l->top.status, "models"), l->view.sort, "fps", "latency_ms.p99");
    size_t count = json_array_size(models);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(ctl_text(json_array_get(models, i), "name"), l->model ? l->model : "") == 0) {
            set_text(&l->model,
                     ctl_text(json_array_get(models, (i + count + (size_t)by) % count), "name"));
            break;
        }
    }
    l->next_ns = l->view.page == TOP_PAGE_UNITS && !l->paused ? 0 : l->next_ns;
}

static void turn_to(struct live *l, enum top_page page, uint64_t now_ns)
{
    l->view.page = l->view.page == page ? TOP_PAGE_MODEL : page;
    l->view.scroll = 0;
    if (l->view.page == TOP_PAGE_UNITS && l->feed.expected == 0) {
        ask_all(l, now_ns);
    }
}

static void scroll(struct live *l, long by)
{
    long at = (long)l->view.scroll + by;

    l->view.scroll = at > 0 ? (size_t)at : 0;
}

static void take_key(struct live *l, int key, uint64_t now_ns)
{
    long page = base_max((long)l->screen.rows - 3, 1l);

    switch (key) {
    case 'q':
    case 'Q':
        l->ended = true;
        break;
    case 'n':
    case '\t':
    case TOP_KEY_RIGHT:
        step_model(l, 1);
        break;
    case 'p':
    case TOP_KEY_LEFT:
        step_model(l, -1);
        break;
    case 's':
        l->view.sort = (l->view.sort + 1) % TOP_SORTS;
        break;
    case 'u':
        turn_to(l, TOP_PAGE_UNITS, now_ns);
        break;
    case 'd':
        turn_to(l, TOP_PAGE_DECISIONS, now_ns);
        break;
    case 'h':
    case '?':
        turn_to(l, TOP_PAGE_HELP, now_ns);
        break;
    case 'm':
    case 27:
        turn_to(l, TOP_PAGE_MODEL, now_ns);
        break;
    case ' ':
        l->paused = !l->paused;
        l->next_ns = now_ns;
        break;
    case TOP_KEY_UP:
        scroll(l, -1);
        break;
    case TOP_KEY_DOWN:
        scroll(l, 1);
        break;
    case TOP_KEY_PAGE_UP:
        scroll(l, -page);
        break;
    case TOP_KEY_PAGE_DOWN:
        scroll(l, page);
        break;
    default:
        break;
    }
}

/* ---- the screen ---- */

static void draw(struct live *l, bool whole, uint64_t now_ns)
{
    bool silent = l->feed.expected > 0 && now_ns - l->feed.asked_at_ns > SILENT_NS;
    size_t rows, columns;
    char late[64];

    top_terminal_size(&rows, &columns);
    if (rows != l->screen.rows || columns != l->screen.columns) {
        top_screen_deinit(&l->screen);
        if (top_screen_init(&l->screen, rows, columns, l->ascii) != 0) {
            return;
        }
    }
    snprintf(late, sizeof(late), "waits: no answer for %llu s",
             (unsigned long long)((now_ns - l->feed.asked_at_ns) / BASE_NS_PER_S));
    l->view.notice = l->paused ? "paused" : l->notice[0] ? l->notice : silent ? late : NULL;
    l->view.model = l->model;
    l->view.events = l->events;
    l->view.units = l->units_of && l->model && strcmp(l->units_of, l->model) == 0 ? l->units : NULL;
    l->view.explanation = l->explanation;
    /* While nothing is asked, the curve stands still. */
    l->view.now_ns = l->paused && l->top.at_ns ? l->top.at_ns : now_ns;
    top_draw(&l->view, &l->screen);
    top_terminal_show(&l->screen, whole);
}

static void wait_for_something(struct live *l, uint64_t now_ns, const sigset_t *open)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           ipc_control_poll(&l->feed.conn),
                           ipc_control_poll(&l->explain.conn)};
    uint64_t until = now_ns + BASE_NS_PER_S, left;
    struct timespec limit;

    if (!l->paused && l->feed.expected == 0) {
        until = base_min(until, base_max(l->next_ns, now_ns));
    }
    left = until - now_ns;
    limit = (struct timespec){(time_t)(left / BASE_NS_PER_S), (long)(left % BASE_NS_PER_S)};
    ppoll(fds, base_array_count(fds), &limit, open);
    if (fds[0].revents & (POLLHUP | POLLERR)) {
        l->ended = true; /* the terminal is gone */
    }
}

static void run(struct live *l, const sigset_t *open)
{
    bool dirty = true, whole = false;
    uint64_t now = base_now_ns(), drawn = 0;

    while (!l->ended && !signalled) {
        int key;

        if (!l->paused && l->feed.expected == 0 && now >= l->next_ns) {
            ask_all(l, now);
            dirty |= l->notice[0] != '\0';
        }
        if (dirty || now - drawn >= BASE_NS_PER_S) {
            draw(l, whole, now);
            drawn = now;
            dirty = whole = false;
        }
        wait_for_something(l, now, open);
        now = base_now_ns();
        while ((key = top_terminal_key()) != TOP_KEY_NONE) {
            take_key(l, key, now);
            whole |= key == TOP_KEY_RESIZE || key == 'l' - '`';
            dirty = true;
        }
        dirty |= read_daemon(l, now);
    }
}

/* Signals that end the program are let in only while it waits. */
static void catch_signals(sigset_t *ret_open)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t closed;

    sigemptyset(&closed);
    for (size_t i = 0; i < base_array_count(numbers); i++) {
        sigaddset(&closed, numbers[i]);
        sigaction(numbers[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &closed, ret_open);
    for (size_t i = 0; i < base_array_count(numbers); i++) {
        sigdelset(ret_open, numbers[i]);
    }
}

static void deinit(struct live *l)
{
    feed_close(&l->feed);
    feed_close(&l->explain);
    top_screen_deinit(&l->screen);
    top_deinit(&l->top);
    json_decref(l->events);
    json_decref(l->units);
    json_decref(l->explanation);
    free(l->model);
    free(l->units_of);
    free(l->explained);
}

int top_live(const struct ctl *ctl, const struct ctl_options *o, bool ascii)
{
    struct live l = {.ctl = ctl,
                     .ascii = ascii,
                     .interval_ns = (uint64_t)(o->interval_s * 1e9),
                     .top = TOP_NULL};
    const char *term = getenv("TERM");
    sigset_t open;

    catch_signals(&open);
    if (top_terminal_open() < 0) {
        return ctl_fail("the terminal \"%s\" is not known; set TERM, or use --once",
                        term ? term : "");
    }
    l.view.top = &l.top;
    l.feed.conn = l.explain.conn = IPC_CONTROL_NULL;
    set_text(&l.model, o->model);
    run(&l, &open);
    top_terminal_close();
    deinit(&l);
    if (signalled) {
        signal(signalled, SIG_DFL);
        sigprocmask(SIG_SETMASK, &open, NULL);
        raise(signalled);
    }
    return CTL_DONE;
}
