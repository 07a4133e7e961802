/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piped-link --relay: frames from stdin to whole copies of a model on other boards, answers to
 * stdout in order. Boards may come and go; the ledger sends again what they leave unanswered.
 *
 * A way is a board of the list, so it keeps its number in every epoch.
 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/ledger.h"
#include "ipc/link/link.h"

#define FRAMES_MAX 64u
#define STREAM 1u
#define RETRY_NS (1 * BASE_NS_PER_S) /* of a board that did not serve the model */

struct bytes {
    unsigned holders; /* the ledger, and each message that the transport still has */
    uint64_t bytes;
    uint8_t data[];
};
struct relay {
    struct link *link;
    char model[64];
    struct lnk_tensor tensor;
    struct lnk_ledger *ledger; /* owned */
    struct bytes *reading;     /* owned: the frame that comes in */
    size_t read_bytes, ways[LNK_WAYS_MAX], way_count;
    bool ended, failed;
    uint32_t epoch;
    uint64_t retry_ns; /* 0: no board refused */
};

static void let_go(void *arg)
{
    struct bytes *b = arg;

    if (b && --b->holders == 0) {
        free(b);
    }
}

/* "1x3x224x224" */
static bool read_shape(const char *text, struct lnk_tensor *ret)
{
    *ret = (struct lnk_tensor){.dtype = LNK_F32};
    while (ret->rank < LNK_RANK_MAX) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || n == 0 || n > UINT32_MAX) {
            return false;
        }
        ret->dim[ret->rank++] = (uint32_t)n;
        if (*end == 0) {
            return lnk_tensor_bytes(ret, &ret->bytes);
        }
        if (*end != 'x') {
            return false;
        }
        text = end + 1;
    }
    return false;
}

static bool is_in(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, n) == 0 && (at[n] == 0 || at[n] == ',')) {
            return true;
        }
    }
    return false;
}

int relay_new(struct link *l, const char *model, const char *to, const char *shape,
              struct relay **ret, char ret_error[256])
{
    struct relay *r = calloc(1, sizeof(*r));
    int rc = r ? lnk_ledger_new(FRAMES_MAX, &r->ledger) : -ENOMEM;

    if (rc < 0) {
        free(r);
        return rc;
    }
    r->link = l;
    snprintf(r->model, sizeof(r->model), "%s", model);
    for (size_t i = 0; i < l->boards.count && r->way_count < LNK_WAYS_MAX; i++) {
        if (!to || is_in(to, l->boards.board[i].name)) {
            r->ways[r->way_count++] = i;
        }
    }
    if (r->way_count == 0 || strlen(model) >= sizeof(r->model) || !read_shape(shape, &r->tensor)) {
        snprintf(ret_error, 256,
                 r->way_count == 0 ? "--to names no board of the list"
                                   : "--relay needs a model's name and --input its shape, such as "
                                     "1x3x224x224");
        relay_free(r);
        return -EINVAL;
    }
    *ret = r;
    return 0;
}

struct relay *relay_free(struct relay *r)
{
    if (r) {
        free(r->reading);
        lnk_ledger_free(r->ledger);
        free(r);
    }
    return NULL;
}

static size_t way_of(const struct relay *r, size_t peer)
{
    size_t way = 0;

    while (way < r->way_count && r->ways[way] != peer) {
        way++;
    }
    return way;
}

/* All boards that are there; each gets credits when it has opened the model. Frames in flight go
 * on. */
static void begin_epoch(struct relay *r)
{
    struct lnk_way ways[LNK_WAYS_MAX] = {{0}};

    r->epoch = lnk_ledger_begin(r->ledger, ways, (uint32_t)r->way_count);
    for (size_t i = 0; i < r->way_count; i++) {
        struct lnk_message m = {.header.type = LNK_PLAN};

        m.plan = (struct lnk_plan){.stream = STREAM, .epoch = r->epoch, .hop_count = 1};
        m.tail = (const uint8_t *)r->model;
        m.tail_bytes = strlen(r->model);
        if (r->link->peer[r->ways[i]].joined) {
            link_put(r->link, r->ways[i], LNK_BULK, &m, NULL, 0, NULL, NULL);
        }
    }
}

void relay_joined(struct relay *r, size_t peer)
{
    if (way_of(r, peer) < r->way_count) {
        begin_epoch(r);
    }
}

void relay_gone(struct relay *r, size_t peer)
{
    uint32_t way = (uint32_t)way_of(r, peer), again;

    if (way == r->way_count) {
        return;
    }
    again = lnk_ledger_void(r->ledger, r->epoch, way);
    link_log("%u frames that %s had are sent again", again, r->link->boards.board[peer].name);
}

void relay_credit(struct relay *r, size_t peer, const struct lnk_credit *c)
{
    if (c->stream == STREAM) {
        lnk_ledger_window(r->ledger, c->epoch, (uint32_t)way_of(r, peer),
                          base_min(c->credits, FRAMES_MAX));
    }
}

void relay_answer(struct relay *r, size_t peer, const struct lnk_message *m,
                  const struct lnk_bytes *part)
{
    struct bytes *b;
    size_t at = 0;

    b = malloc(sizeof(*b) + m->header.payload_bytes);
    if (!b || m->answer.stream != STREAM) {
        free(b);
        return;
    }
    *b = (struct bytes){1, m->header.payload_bytes};
    for (size_t i = 0; i < m->answer.tensor_count; i++) {
        memcpy(b->data + at, part[i].data, part[i].bytes);
        at += part[i].bytes;
    }
    if (lnk_ledger_answer(r->ledger, m->answer.frame, m->answer.epoch, (uint32_t)way_of(r, peer), 0,
                          b) != 0) {
        free(b);
    }
}

void relay_error(struct relay *r, size_t peer, const struct lnk_message *m)
{
    const char *board = r->link->boards.board[peer].name;
    struct lnk_due due = {
        .frame = m->error.frame, .epoch = m->error.epoch, .way = (uint32_t)way_of(r, peer)};

    if (m->error.stream != STREAM || due.way == r->way_count) {
        return;
    }
    if (m->error.status == PIPED_RESOURCE_EXHAUSTED && m->error.frame != 0) {
        /* It still had frames of a link that only we saw break. */
        lnk_ledger_unsend(r->ledger, &due);
    } else if (m->error.frame == 0 || m->error.status == PIPED_NOT_FOUND ||
               m->error.status == PIPED_UNAVAILABLE) {
        link_log("%s does not serve %s: %.*s", board, r->model, (int)m->tail_bytes,
                 (const char *)m->tail);
        relay_gone(r, peer);
        r->retry_ns = base_now_ns() + RETRY_NS;
    } else {
        lnk_ledger_answer(r->ledger, due.frame, due.epoch, due.way, m->error.status, NULL);
    }
}

bool relay_wants_input(const struct relay *r)
{
    struct lnk_ledger_counts c;

    lnk_ledger_counts(r->ledger, &c);
    return !r->ended && c.admitted - c.released < FRAMES_MAX;
}

void relay_input(struct relay *r)
{
    ssize_t n;
    uint64_t frame;

    if (!r->reading) {
        r->reading = malloc(sizeof(*r->reading) + r->tensor.bytes);
        r->read_bytes = 0;
    }
    n = r->reading ? read(0, r->reading->data + r->read_bytes, r->tensor.bytes - r->read_bytes) : 0;
    if (n <= 0) {
        r->ended = n == 0 || (errno != EINTR && errno != EAGAIN);
        return;
    }
    r->read_bytes += (size_t)n;
    if (r->read_bytes == r->tensor.bytes) {
        r->reading->holders = 1;
        r->reading->bytes = r->tensor.bytes;
        lnk_ledger_admit(r->ledger, base_take(r->reading), 0, &frame);
    }
}

static void send_due(struct relay *r, uint64_t now_ns)
{
    struct lnk_due due;

    while (lnk_ledger_next(r->ledger, now_ns, PIPED_DEADLINE_EXCEEDED, &due) == 0) {
        struct lnk_message m = {.header.type = LNK_FRAME};
        struct bytes *b = due.input;
        struct lnk_bytes range = {b->data, b->bytes};

        m.frame = (struct lnk_frame){.stream = STREAM, .epoch = due.epoch, .frame = due.frame};
        m.frame.left_ns = due.left_ns;
        m.frame.tensor_count = 1;
        m.tensor[0] = r->tensor;
        b->holders++;
        if (link_put(r->link, r->ways[due.way], LNK_BULK, &m, &range, 1, let_go, b) != 0) {
            b->holders--;
            lnk_ledger_unsend(r->ledger, &due);
            return; /* room or a loss will come as an event */
        }
    }
}

bool relay_go(struct relay *r, uint64_t now_ns)
{
    struct lnk_ledger_counts c;
    struct lnk_done done;

    if (r->retry_ns && now_ns >= r->retry_ns) {
        r->retry_ns = 0;
        begin_epoch(r);
    }
    send_due(r, now_ns);
    while (lnk_ledger_release(r->ledger, &done) == 0) {
        struct bytes *answer = done.answer;

        if (!answer) {
            link_log("frame %llu has no answer: %s", (unsigned long long)done.frame,
                     piped_status_name((int)done.status));
        } else if (fwrite(answer->data, 1, answer->bytes, stdout) != answer->bytes) {
            r->failed = r->ended = true;
        }
        let_go(answer);
        let_go(done.input);
    }
    fflush(stdout);
    lnk_ledger_counts(r->ledger, &c);
    if (r->ended && (r->failed || c.admitted == c.released)) {
        link_log(
            "%llu frames answered, %llu sent again, %llu late and %llu doubled answers dropped",
            (unsigned long long)c.released, (unsigned long long)c.resent,
            (unsigned long long)c.late, (unsigned long long)c.doubled);
        return false;
    }
    return true;
}
