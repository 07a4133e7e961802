/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/segments.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/daemon_call.h"
#include "ipc/link/fetch.h"
#include "ipc/link/segment_file.h"

#define CONNECT_MS 200u               /* how long to look for the daemon */
#define DAEMON_NS (2 * BASE_NS_PER_S) /* the same, before it shall load */
#define UNUSED_NS (30 * BASE_NS_PER_S)
#define SLOTS 16u                 /* frames that one may have, computed or waiting */
#define SLOTS_BYTES (64ull << 20) /* unless they take more than that */

struct segments {
    struct link *link;
    struct daemon_conn *conn; /* owned: Load, Unload; NULL: a relay */
    void (*changed)(struct link *l, struct segment *s);
    struct segment segment[SEGMENTS_MAX];
};

int segments_new(struct link *l, void (*changed)(struct link *l, struct segment *s),
                 struct segments **ret)
{
    struct segments *s = calloc(1, sizeof(*s));
    int rc = s && l->control_path ? daemon_conn_new(l->control_path, &s->conn) : 0;

    if (!s || rc < 0) {
        free(s);
        return s ? rc : -ENOMEM;
    }
    s->link = l;
    s->changed = changed;
    *ret = s;
    return 0;
}

static void free_owned(struct segment *s)
{
    piped_close(s->piped);
    for (size_t i = 0; i < SEGMENT_SLOTS_MAX; i++) {
        hop_border_deinit(&s->job[i].border);
    }
}

static void close_segment(struct segment *s)
{
    free_owned(s);
    if (s->fetched) {
        fetch_release(s->link, s->identity);
    }
    *s = (struct segment){0};
}

struct segments *segments_free(struct segments *s)
{
    if (s) {
        for (size_t i = 0; i < SEGMENTS_MAX; i++) {
            free_owned(&s->segment[i]);
        }
        daemon_conn_free(s->conn);
        free(s);
    }
    return NULL;
}

struct segment *segment_release(struct segment *s)
{
    if (s && --s->users == 0) {
        s->unused_ns = base_now_ns();
    }
    return NULL;
}

void segment_fail(struct segment *s, int status, const char *why)
{
    if (s->phase == SEGMENT_FAILED) {
        return;
    }
    s->phase = SEGMENT_FAILED;
    s->status = status;
    snprintf(s->why, sizeof(s->why), "%s", why);
    link_log("%s does not serve: %s", s->name, s->why);
    s->link->segments->changed(s->link, s);
}

struct segment_job *segment_job(struct segment *s)
{
    struct piped_frame *f;

    for (size_t i = 0; i < SEGMENT_SLOTS_MAX; i++) {
        struct segment_job *j = &s->job[i];

        if (!j->frame) {
            if (piped_acquire(s->stream, &f) < 0) {
                return NULL;
            }
            hop_border_next(&j->border);
            *j = (struct segment_job){.segment = s, .frame = f, .border = j->border};
            f->user = j;
            return j;
        }
    }
    return NULL;
}

void segment_job_end(struct segment_job *j)
{
    piped_release(j->segment->stream, j->frame);
    j->frame = NULL;
}

/* Opens the stream with as many slots as fit. Return: 0 or -errno. */
static int open_stream(struct segment *s, const struct piped_options *o)
{
    struct piped_stream_options so = {.size = sizeof(so), .model = s->name};
    const struct piped_stream_info *info;
    uint64_t slots;
    int rc = piped_connect(o, &s->piped);

    rc = rc < 0 ? rc : piped_stream_open(s->piped, &so, &s->stream);
    if (rc < 0) {
        return rc;
    }
    info = piped_stream_info(s->stream);
    slots = SLOTS_BYTES / base_max(info->input_bytes + info->output_bytes, 1ull);
    slots = base_min(slots, (uint64_t)SLOTS);
    if (slots > info->slots) {
        so.slots = (uint32_t)slots;
        s->stream = piped_stream_close(s->stream);
        rc = piped_stream_open(s->piped, &so, &s->stream);
    }
    return rc;
}

static void open_segment(struct segment *s)
{
    struct piped_options o = {sizeof(o), s->link->frames_path, "piped-link", CONNECT_MS};
    int rc = open_stream(s, &o);

    if (rc < 0) {
        segment_fail(s, rc == -ENOENT && s->piped ? PIPED_NOT_FOUND : PIPED_UNAVAILABLE,
                     piped_last_error());
        return;
    }
    s->phase = SEGMENT_READY;
    link_log("serves %s for %s", s->name, link_name(s->link, s->head));
    s->link->segments->changed(s->link, s);
}

static void loaded(void *arg, const char *error, const json_t *parameters)
{
    struct segment *s = arg;
    const char *why = json_string_value(json_object_get(parameters, "why"));
    char text[256];

    if (error && strcmp(error, "io.piped.Busy") != 0) { /* Busy: it is loaded already */
        snprintf(text, sizeof(text), "%s", why ? why : *error ? error : "the daemon is gone");
        segment_fail(s, PIPED_UNAVAILABLE, text);
        return;
    }
    s->loaded = true;
    open_segment(s);
}

static void load(struct segment *s)
{
    struct daemon_conn *c = s->link->segments->conn;

    s->phase = SEGMENT_LOADING;
    if (daemon_conn_call(c, "io.piped.Load",
                         json_pack("{s:s, s:s}", "name", s->name, "path", s->path), false, loaded,
                         s) < 0) {
        segment_fail(s, PIPED_UNAVAILABLE, "the daemon is not there");
    }
}

static void found(void *arg, int status, const char *path_or_why)
{
    struct segment *s = arg;

    if (status != 0) {
        segment_fail(s, status, path_or_why);
        return;
    }
    snprintf(s->path, sizeof(s->path), "%s", path_or_why);
    load(s);
}

static void fetched(void *arg, int status, const char *path_or_why)
{
    struct segment *s = arg;

    s->fetched = status == 0;
    found(s, status, path_or_why);
}

static struct segment *find(struct segments *s, const char *name)
{
    struct segment *unused = NULL;

    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        struct segment *g = &s->segment[i];

        if (g->phase == SEGMENT_NONE) {
            unused = unused ? unused : g;
        } else if (g->phase != SEGMENT_FAILED && strcmp(g->name, name) == 0) {
            return g;
        }
    }
    return unused;
}

struct segment *segment_hold(struct link *l, size_t head, const struct lnk_message *m,
                             const char *content, const char *leaves, bool plain)
{
    char name[SEGMENT_NAME_BYTES];
    struct segment *s;

    if (plain) {
        snprintf(name, sizeof(name), "%s", content);
    } else {
        snprintf(name, sizeof(name), "%s#%u-%u", content, m->plan.first_unit, m->plan.last_unit);
    }
    s = find(l->segments, name);
    if (!s) {
        return NULL;
    }
    s->users++;
    if (s->phase != SEGMENT_NONE) {
        return s;
    }
    s->link = l;
    s->head = head;
    s->plain = plain;
    s->phase = SEGMENT_FINDING;
    s->begun_ns = base_now_ns();
    s->first_unit = m->plan.first_unit;
    s->last_unit = m->plan.last_unit;
    memcpy(s->name, name, sizeof(name));
    snprintf(s->content, sizeof(s->content), "%s", content);
    snprintf(s->leaves, sizeof(s->leaves), "%s", leaves);
    memcpy(s->identity, m->plan.model, sizeof(s->identity));
    return s;
}

static void unloaded(void *arg, const char *error, const json_t *parameters)
{
    (void)arg;
    (void)error; /* it was not there: as wanted */
    (void)parameters;
}

/* Nobody uses it. */
static void retire(struct segments *all, struct segment *s)
{
    if (s->loaded && all->conn) {
        daemon_conn_call(all->conn, "io.piped.Unload", json_pack("{s:s}", "name", s->name), false,
                         unloaded, NULL);
    }
    close_segment(s);
}

/* Begins to look for the file, once the daemon is there. */
static void look(struct segments *all, struct segment *s, uint64_t now_ns)
{
    struct segment_file f = {s->link, all->conn, s->head, s->identity, s->leaves};

    if (s->plain) {
        open_segment(s);
    } else if (all->conn && daemon_conn_up(all->conn)) {
        s->asked = true;
        segment_file_find(&f, found, fetched, s);
    } else if (now_ns - s->begun_ns > DAEMON_NS) {
        segment_fail(s, PIPED_UNAVAILABLE, "the daemon is not there");
    }
}

static void go(struct segments *all, struct segment *s, uint64_t now_ns)
{
    if (s->phase == SEGMENT_FINDING && !s->asked) {
        look(all, s, now_ns);
    } else if (s->phase == SEGMENT_FINDING && s->users == 0 && s->link->fetch &&
               fetch_cancel(s->link, s) > 0) {
        close_segment(s);
        return;
    }
    if (s->phase == SEGMENT_READY && piped_dispatch(s->piped, 0) == -ENOTCONN) {
        segment_fail(s, PIPED_UNAVAILABLE, "the daemon is gone");
    }
    if (s->phase == SEGMENT_FAILED && s->users == 0 && s->held == 0) {
        s->loaded = false; /* the daemon has it no more, or says why it has not */
        close_segment(s);
    } else if (s->phase == SEGMENT_READY && s->users == 0 && s->held == 0 &&
               now_ns - s->unused_ns > UNUSED_NS) {
        retire(all, s);
    }
}

void segments_go(struct link *l, uint64_t now_ns)
{
    struct segments *all = l->segments;

    if (all->conn) {
        daemon_conn_go(all->conn, now_ns);
    }
    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        if (all->segment[i].phase != SEGMENT_NONE) {
            go(all, &all->segment[i], now_ns);
        }
    }
}

size_t segments_poll(const struct link *l, struct pollfd *ret, size_t max)
{
    const struct segments *all = l->segments;
    size_t n = 0;

    if (all->conn && max > 0) {
        ret[n++] = daemon_conn_poll(all->conn);
    }
    for (size_t i = 0; i < SEGMENTS_MAX && n < max; i++) {
        if (all->segment[i].phase == SEGMENT_READY) {
            ret[n++] = (struct pollfd){piped_fd(all->segment[i].piped), POLLIN, 0};
        }
    }
    return n;
}

struct segment *segments_each(const struct link *l, size_t *at)
{
    struct segments *all = l->segments;

    while (*at < SEGMENTS_MAX) {
        struct segment *s = &all->segment[(*at)++];

        if (s->phase == SEGMENT_READY) {
            return s;
        }
    }
    return NULL;
}
