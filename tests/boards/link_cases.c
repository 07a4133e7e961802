/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/boards/link_cases.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/link/transport/code.h"
#include "base/base.h"

#define WAIT_NS (30 * BASE_NS_PER_S)
#define EXCHANGED 60u
#define PRESSED 48u
#define PRESSED_BYTES (1u << 20)

enum kind { DATA, PING, PONG, FINISHED };

struct head {
    uint32_t kind, lane;
    uint64_t number;
    uint32_t count, bytes; /* ranges; bytes of each before the last, which has one less each time */
};

static void wrong(struct node *n, const char *what, size_t peer, uint64_t a, uint64_t b)
{
    n->wrong++;
    snprintf(n->problem, sizeof(n->problem), "%s of %s: %llu against %llu", what,
             n->peers[peer].name, (unsigned long long)a, (unsigned long long)b);
}

static uint8_t pattern(uint64_t number, size_t range, size_t i)
{
    return (uint8_t)(number * 31 + range * 7 + i + (i >> 8));
}

static size_t range_bytes(const struct head *h, size_t range)
{
    return h->bytes > range ? h->bytes - range : 0;
}

static void fill(uint8_t *to, uint64_t number, size_t range, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = pattern(number, range, i);
    }
}

/* Waits for the transport. Return: false: @deadline_ns is over. */
static bool pump(struct node *n, uint64_t deadline_ns)
{
    struct pollfd fd = {lnk_transport_fd(n->transport), POLLIN, 0};
    uint64_t now = base_now_ns();

    if (now >= deadline_ns) {
        return false;
    }
    poll(&fd, 1, (int)((deadline_ns - now) / BASE_NS_PER_MS) + 1);
    lnk_transport_dispatch(n->transport);
    return true;
}

struct lent {
    struct node *node;
    uint8_t *bytes;
};

static void released(void *arg)
{
    struct lent *l = arg;

    l->node->returned++;
    free(l->bytes);
    free(l);
}

/* Sends as soon as there is room. */
static bool post(struct node *n, size_t peer, struct head h, bool lend)
{
    struct lnk_bytes range[LNK_RANGES_MAX];
    struct lent *l = malloc(sizeof(*l));
    uint64_t deadline = base_now_ns() + WAIT_NS;
    size_t at = 0;
    int rc;

    *l = (struct lent){n, malloc((size_t)h.bytes * h.count + 1)};
    for (size_t i = 0; i < h.count; i++) {
        range[i] = (struct lnk_bytes){l->bytes + at, range_bytes(&h, i)};
        fill(l->bytes + at, h.number, i, range[i].bytes);
        at += range[i].bytes;
    }
    do {
        rc = lnk_send(n->transport, peer, (enum lnk_lane)h.lane, (struct lnk_bytes){&h, sizeof(h)},
                      range, h.count, lend ? released : NULL, l);
    } while (rc == LNK_E_FULL && pump(n, deadline));
    if (rc == 0 && lend) {
        n->lent++;
        return true;
    }
    free(l->bytes);
    free(l);
    if (rc != 0) {
        wrong(n, "send", peer, (uint64_t)rc, 0);
    }
    return rc == 0;
}

static void check_data(struct node *n, size_t peer, const struct head *h,
                       const struct lnk_bytes *part, size_t count)
{
    if (h->lane >= LNK_LANES || h->number != n->next_in[peer][h->lane]) {
        wrong(n, "order", peer, h->number, n->next_in[peer][h->lane % LNK_LANES]);
        return;
    }
    n->next_in[peer][h->lane]++;
    if (count != h->count + 1) {
        wrong(n, "parts", peer, count, h->count + 1);
        return;
    }
    for (size_t r = 0; r < h->count; r++) {
        const uint8_t *data = part[1 + r].data;

        if (part[1 + r].bytes != range_bytes(h, r)) {
            wrong(n, "bytes", peer, part[1 + r].bytes, range_bytes(h, r));
            return;
        }
        n->bytes_in += part[1 + r].bytes;
        for (size_t i = 0; i < part[1 + r].bytes; i++) {
            if (data[i] != pattern(h->number, r, i)) {
                wrong(n, "contents", peer, data[i], pattern(h->number, r, i));
                return;
            }
        }
    }
}

void cases_message(struct node *n, size_t peer, const struct lnk_bytes *part, size_t count)
{
    struct head h;

    if (part[0].bytes != sizeof(h)) {
        wrong(n, "first part", peer, part[0].bytes, sizeof(h));
        return;
    }
    memcpy(&h, part[0].data, sizeof(h));
    if (h.kind == PING) {
        h.kind = PONG;
        lnk_send(n->transport, peer, LNK_URGENT, (struct lnk_bytes){&h, sizeof(h)}, NULL, 0, NULL,
                 NULL);
    } else if (h.kind == PONG) {
        n->pongs++;
    } else if (h.kind == FINISHED) {
        n->finished[peer]++;
    } else if (n->suite) {
        check_data(n, peer, &h, part, count);
    } else {
        printf("message %s %llu %zu\n", n->peers[peer].name, (unsigned long long)h.number,
               count > 1 ? part[1].bytes : 0);
    }
}

void cases_send(struct node *n, size_t peer, size_t count, size_t bytes)
{
    size_t sent = 0;

    for (; sent < count; sent++) {
        struct head h = {DATA, LNK_BULK, sent, 1, (uint32_t)bytes};
        uint8_t *data = calloc(1, bytes + 1);
        struct lnk_bytes range = {data, bytes};
        int rc = lnk_send(n->transport, peer, LNK_BULK, (struct lnk_bytes){&h, sizeof(h)}, &range,
                          1, NULL, NULL);

        free(data);
        if (rc) {
            printf("not-sent %s %s\n", n->peers[peer].name, rc == LNK_E_DOWN ? "down" : "full");
            break;
        }
    }
    printf("sent %s %zu\n", n->peers[peer].name, sent);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void cases_round_trips(struct node *n, size_t peer, size_t count, size_t bytes)
{
    uint64_t *took = calloc(count, sizeof(*took)), deadline = base_now_ns() + WAIT_NS;
    uint8_t *data = calloc(1, bytes + 1);
    size_t done = 0;

    for (; done < count; done++) {
        struct head h = {PING, LNK_BULK, done, 1, (uint32_t)bytes};
        struct lnk_bytes range = {data, bytes};
        uint64_t before = n->pongs, start = base_now_ns();
        struct lent *l = malloc(sizeof(*l));

        *l = (struct lent){n, NULL};
        if (lnk_send(n->transport, peer, LNK_BULK, (struct lnk_bytes){&h, sizeof(h)}, &range, 1,
                     released, l) != 0) {
            free(l);
            break;
        }
        n->lent++;
        while (n->pongs == before && pump(n, deadline)) {
        }
        if (n->pongs == before) {
            wrong(n, "answer to a ping", peer, done, count);
            break;
        }
        took[done] = base_now_ns() - start;
    }
    while (n->returned < n->lent && pump(n, deadline)) {
    }
    qsort(took, done, sizeof(*took), compare);
    printf("rtt %s %zu %llu %llu\n", n->peers[peer].name, bytes,
           done ? (unsigned long long)took[0] : 0, done ? (unsigned long long)took[done / 2] : 0);
    free(took);
    free(data);
}

static bool is_self(const struct node *n, size_t peer)
{
    return peer == n->transport->self;
}

static void all_are_up(struct node *n)
{
    uint64_t deadline = base_now_ns() + WAIT_NS;

    for (size_t i = 0; i < n->peer_count; i++) {
        while (!is_self(n, i) && !n->up[i] && pump(n, deadline)) {
        }
        if (!is_self(n, i) && !n->up[i]) {
            wrong(n, "up", i, 0, 1);
        }
    }
}

/* Everybody is where we are: what they sent before has arrived, each lane in order. */
static void meet(struct node *n, uint32_t times)
{
    uint64_t deadline = base_now_ns() + WAIT_NS;

    for (size_t i = 0; i < n->peer_count; i++) {
        if (!is_self(n, i)) {
            post(n, i, (struct head){FINISHED, LNK_URGENT, 0, 0, 0}, false);
            post(n, i, (struct head){FINISHED, LNK_BULK, 0, 0, 0}, false);
        }
    }
    for (size_t i = 0; i < n->peer_count; i++) {
        while (!is_self(n, i) && n->finished[i] < 2 * times && pump(n, deadline)) {
        }
        if (!is_self(n, i) && n->finished[i] < 2 * times) {
            wrong(n, "end", i, n->finished[i], 2 * times);
        }
    }
}

/* Messages of all shapes in both lanes, from everybody to everybody. */
static void whole_and_in_order(struct node *n)
{
    static const uint32_t bytes[] = {0, 1, 29, 30, 255, 256, 4096, 8192, 65536, 300001, 1 << 20};

    for (uint32_t k = 0; k < EXCHANGED; k++) {
        for (size_t i = 0; i < n->peer_count; i++) {
            uint32_t lane = k % 5 == 0 ? LNK_URGENT : LNK_BULK;
            uint32_t size = bytes[(k + i) % base_array_count(bytes)];
            uint32_t count = size > 100000 ? 2 : (k * 7) % (LNK_RANGES_MAX + 1);

            if (!is_self(n, i)) {
                post(n, i, (struct head){DATA, lane, n->next_out[i][lane]++, count, size},
                     k % 3 != 0);
            }
        }
    }
    meet(n, 1);
    for (size_t i = 0; i < n->peer_count; i++) {
        uint64_t got = n->next_in[i][0] + n->next_in[i][1];

        if (!is_self(n, i) && got < EXCHANGED) { /* it may be in the next case already */
            wrong(n, "messages", i, got, EXCHANGED);
        }
    }
}

static uint64_t times_full(const struct node *n)
{
    struct lnk_peer_stats s;
    struct lnk_transport_stats all;
    uint64_t times = 0;

    for (size_t i = 0; i < n->peer_count; i++) {
        lnk_transport_stats(n->transport, i, &s, &all);
        times += s.refused_full;
    }
    return times;
}

static void full_then_room(struct node *n)
{
    struct lnk_peer_stats s = {0};
    struct lnk_transport_stats all;
    uint64_t before = times_full(n), rooms = n->rooms, deadline;
    bool full;

    for (uint32_t k = 0; k < PRESSED; k++) {
        for (size_t i = 0; i < n->peer_count; i++) {
            if (!is_self(n, i)) {
                post(n, i,
                     (struct head){DATA, LNK_BULK, n->next_out[i][LNK_BULK]++, 1, PRESSED_BYTES},
                     true);
                lnk_transport_stats(n->transport, i, &s, &all);
                if (s.queued_bytes > (4 << 20)) {
                    wrong(n, "queue", i, s.queued_bytes, 4 << 20);
                }
            }
        }
    }
    meet(n, 2);
    full = times_full(n) > before;
    deadline = base_now_ns() + WAIT_NS; /* others may have sent all, and not yet taken all */
    while (full && n->rooms == rooms && pump(n, deadline)) {
    }
    if (full && n->rooms == rooms) {
        wrong(n, "room", 0, n->rooms, rooms + 1);
    }
    printf("was full: %s\n", full ? "yes" : "no");
}

static void statistics_agree(struct node *n)
{
    struct lnk_peer_stats s;
    struct lnk_transport_stats all;
    uint64_t deadline = base_now_ns() + WAIT_NS;

    while (n->returned < n->lent && pump(n, deadline)) {
    }
    if (n->returned != n->lent) {
        wrong(n, "lent bytes", 0, n->returned, n->lent);
    }
    for (size_t i = 0; i < n->peer_count; i++) {
        lnk_transport_stats(n->transport, i, &s, &all);
        /* both exchanges, and two ends of each; the peer may be in the next case already */
        if (!is_self(n, i) &&
            (s.messages_in < EXCHANGED + PRESSED + 4 || s.downs != 0 ||
             s.messages_out < EXCHANGED + PRESSED + 4 || s.ups != 1 || all.garbage)) {
            wrong(n, "statistics", i, s.messages_in, s.messages_out);
        }
    }
}

static void round_trips(struct node *n)
{
    for (size_t i = 0; i < n->peer_count && i == 0; i++) {
        if (!is_self(n, i)) {
            cases_round_trips(n, i, 50, 64);
            cases_round_trips(n, i, 50, 802816);
        }
    }
    meet(n, 3);
}

int cases_run(struct node *n)
{
    static const struct {
        const char *name;
        void (*run)(struct node *n);
    } cases[] = {{"all_are_up", all_are_up},
                 {"whole_and_in_order", whole_and_in_order},
                 {"full_then_room", full_then_room},
                 {"statistics_agree", statistics_agree},
                 {"round_trips", round_trips}};
    int failed = 0;

    for (size_t i = 0; i < base_array_count(cases) && failed == 0; i++) {
        n->wrong = 0;
        cases[i].run(n);
        failed += n->wrong > 0;
        printf("%s %s%s%s\n", n->wrong ? "FAIL" : "ok", cases[i].name, n->wrong ? ": " : "",
               n->wrong ? n->problem : "");
    }
    return failed;
}

int cases_after_close(struct node *n)
{
    if (n->returned != n->lent) {
        printf("FAIL close: %llu of %llu lent messages came back\n",
               (unsigned long long)n->returned, (unsigned long long)n->lent);
        return 1;
    }
    return 0;
}
