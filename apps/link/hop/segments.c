/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of one piped-link: kept by front, their lanes opened, freed, watched. */
#include "apps/link/hop/hop_private.h"
#include "apps/link/weights/fetch.h"

#define OPEN_NS (5 * BASE_NS_PER_S)  /* how long it may take to open a stream */
#define STUCK_NS (1 * BASE_NS_PER_S) /* see progress.h */
#define TURN_NS (500 * BASE_NS_PER_MS)

struct segments *segments_new(struct link *l, void (*changed)(struct link *l, struct segment *s))
{
    struct segments *s = calloc(1, sizeof(*s));

    if (s) {
        daemon_conn_init(&s->conn, l->control_path);
        s->changed = changed;
    }
    return s;
}

struct segments *segments_free(struct segments *s)
{
    if (s) {
        for (size_t i = 0; i < SEGMENTS_MAX; i++) {
            segment_free_owned(&s->segment[i]);
        }
        daemon_conn_deinit(&s->conn);
        free(s);
    }
    return NULL;
}

void segment_release(struct segment *s)
{
    if (s && --s->users == 0) {
        s->unused_ns = base_now_ns();
    }
}

int segment_lane_open(struct segment *s, uint32_t pixfmt)
{
    struct segment_lane *lane = &s->lane[pixfmt];

    if (lane->stream) {
        return 0;
    }
    if (!lane->opening && !lane->failed) {
        lane->begun_ns = base_now_ns();
        lane->failed = !s->of.preprocess[0] ||
                       segment_open(s->link->frames_path, s->name, pixfmt, &lane->opening) < 0;
    }
    return lane->failed ? PIPED_UNSUPPORTED : PIPED_RESOURCE_EXHAUSTED;
}

/* Pictures: is the stream open now? Those that wait for one that fails are computed elsewhere. */
static void lanes_opened(struct segment *s, uint64_t now_ns)
{
    for (size_t i = 1; i < PIXFMT_COUNT; i++) {
        struct segment_lane *lane = &s->lane[i];
        struct segment_opened r;

        if (segment_open_take(lane, &r)) {
            lane->failed = r.rc < 0;
        } else if (lane->opening && now_ns > lane->begun_ns + OPEN_NS) {
            lane->opening = segment_open_leave(lane->opening);
            lane->failed = true;
        }
    }
}

struct piped_frame *segment_next(struct segment *s)
{
    struct piped_frame *f;

    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        if (s->lane[i].stream && piped_next(s->lane[i].stream, &f) == 0) {
            return f;
        }
    }
    return NULL;
}

struct segment_job *segment_job(struct segment *s, uint32_t pixfmt)
{
    struct piped_stream *stream = s->lane[pixfmt].stream;
    struct piped_frame *f;

    for (size_t i = 0; i < SEGMENT_SLOTS_MAX; i++) {
        struct segment_job *j = &s->job[i];

        if (!j->frame) {
            if (piped_acquire(stream, &f) < 0) {
                return NULL;
            }
            *j = (struct segment_job){.segment = s, .stream = stream, .frame = f};
            f->user = j;
            return j;
        }
    }
    return NULL;
}

void segment_job_end(struct segment_job *j)
{
    piped_release(j->stream, j->frame);
    j->frame = NULL;
}

/* Return: the one with this name, or a free one; NULL: there is none, or it is of another file. */
static struct segment *find(struct segments *s, const char *name, const uint8_t *identity)
{
    struct segment *unused = NULL;

    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        struct segment *g = &s->segment[i];

        if (g->phase == SEGMENT_NONE) {
            unused = unused ? unused : g;
        } else if (g->phase != SEGMENT_FAILED && strcmp(g->name, name) == 0) {
            return memcmp(g->identity, identity, sizeof(g->identity)) == 0 ? g : NULL;
        }
    }
    return unused;
}

struct segment *segment_hold(struct link *l, size_t head, const struct lnk_message *m,
                             const struct segment_text *of)
{
    char name[SEGMENT_NAME_BYTES];
    struct segment *s;

    snprintf(name, sizeof(name), "%s#%u-%u", of->content, m->plan.first_unit, m->plan.last_unit);
    s = find(l->segments, name, m->plan.model);
    if (!s && segments_make_room(l->segments) > 0) {
        s = find(l->segments, name, m->plan.model);
    }
    if (!s) {
        return NULL;
    }
    s->users++;
    if (s->phase != SEGMENT_NONE) {
        return s;
    }
    s->link = l;
    s->head = head;
    s->of = *of;
    s->phase = SEGMENT_FINDING;
    s->begun_ns = base_now_ns();
    s->first_unit = m->plan.first_unit;
    s->last_unit = m->plan.last_unit;
    memcpy(s->name, name, sizeof(name));
    memcpy(s->identity, m->plan.model, sizeof(s->identity));
    return s;
}

static void go(struct segment *s, bool silent, uint64_t now_ns)
{
    if (s->waits && s->users == 0 && fetch_cancel(s->link, s) > 0) {
        segment_close(s);
        return;
    }
    if (s->phase == SEGMENT_FINDING && !s->asked) {
        segment_look(s, silent, now_ns);
    } else if (s->phase != SEGMENT_FAILED && silent) {
        segment_fail(s, PIPED_UNAVAILABLE, SEGMENT_SILENT);
    }
    if (s->phase == SEGMENT_LOADING && s->lane[0].opening) {
        segment_opened(s);
    }
    if (s->phase == SEGMENT_LOADING && s->lane[0].opening && now_ns > s->begun_ns + OPEN_NS) {
        segment_fail(s, PIPED_UNAVAILABLE, SEGMENT_SILENT);
    }
    lanes_opened(s, now_ns);
    for (size_t i = 0; i < PIXFMT_COUNT && s->phase == SEGMENT_READY; i++) {
        if (s->lane[i].piped && piped_dispatch(s->lane[i].piped, 0) == -ENOTCONN) {
            segment_fail(s, PIPED_UNAVAILABLE, "the daemon is gone");
        }
    }
    if (!segment_is_idle(s)) {
        return;
    }
    if (s->phase == SEGMENT_FAILED) {
        segment_close(s); /* the daemon has it no more, or says why it has not */
    } else if (s->phase == SEGMENT_READY && now_ns > s->unused_ns + s->link->unused_ns) {
        segment_retire(s);
    }
}

void segments_go(struct link *l, uint64_t now_ns)
{
    struct segments *all = l->segments;

    daemon_conn_go(&all->conn, now_ns);
    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        struct segment *s = &all->segment[i];

        if (all->turn_ns + TURN_NS < now_ns) {
            lnk_progress_excuse(&s->progress, now_ns);
        }
        if (s->phase != SEGMENT_NONE) {
            go(s, l->daemon_silent, now_ns);
        }
    }
    all->turn_ns = now_ns;
}

void segments_watch(struct link *l, uint64_t now_ns)
{
    size_t at = 0;

    for (struct segment *s; (s = segments_each(l, &at));) {
        if (s->waits_for_link) { /* who takes no answers gets none */
            lnk_progress_excuse(&s->progress, now_ns);
        } else if (lnk_progress_stuck(&s->progress, now_ns, STUCK_NS)) {
            segment_fail(s, PIPED_UNAVAILABLE, SEGMENT_SILENT);
        }
    }
}

bool segments_are_used(const struct link *l)
{
    bool used = false;

    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        used |= l->segments->segment[i].users > 0;
    }
    return used;
}

size_t segments_poll(const struct link *l, struct pollfd *ret, size_t max)
{
    const struct segments *all = l->segments;
    size_t n = 0;

    if (max > 0) {
        ret[n++] = daemon_conn_poll(&all->conn);
    }
    for (size_t i = 0; i < SEGMENTS_MAX * PIXFMT_COUNT && n < max; i++) {
        const struct segment *s = &all->segment[i / PIXFMT_COUNT];
        const struct segment_lane *lane = &s->lane[i % PIXFMT_COUNT];

        if (lane->opening) {
            ret[n++] = (struct pollfd){segment_open_fd(lane->opening), POLLIN, 0};
        } else if (lane->piped && s->phase == SEGMENT_READY) {
            ret[n++] = (struct pollfd){piped_fd(lane->piped), POLLIN, 0};
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
