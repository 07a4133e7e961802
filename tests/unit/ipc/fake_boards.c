/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "apps/link/transport/code.h"
#include "tests/unit/ipc/fake_boards_private.h"
#include "tests/unit/ipc/fake_wire.h"

#define SENDINGS 65536u

/* A frame that the head sent: until its answer arrives, or is lost. */
struct sending {
    uint32_t stream, epoch, way;
    uint64_t frame;
    bool open;
};

struct boards_chance chance;
struct link head;
uint64_t clock_ns;
static struct lnk_transport transport;
struct boards_told boards_told;
size_t board_count, boards_cancelled;
struct board board[LINK_BOARDS];
bool sees[LINK_BOARDS][LINK_BOARDS]; /* as far as the first knows */
static bool broken[LINK_BOARDS][LINK_BOARDS];
static struct sending sending[SENDINGS];
static size_t sending_count;

static void head_takes(struct link *l, size_t from, const struct lnk_message *m);
/* All of ours reads this clock. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    ret->tv_sec = (time_t)(clock_ns / BASE_NS_PER_S);
    ret->tv_nsec = (long)(clock_ns % BASE_NS_PER_S);
    return 0;
}

void __wrap_link_log(const char *format, ...);
void __wrap_link_log(const char *format, ...)
{
    va_list args;

    if (getenv("PIPED_TEST_VERBOSE")) {
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

bool boards_by_chance(unsigned one_in)
{
    return one_in && t_random() % one_in == 0;
}

/* Board number @n of all, the head's own last. */
size_t boards_nth(size_t n)
{
    return n < board_count ? n : SELF;
}

/* ---- what is open ---- */

static void open_sending(const struct lnk_frame *f)
{
    if (sending_count == SENDINGS) {
        abort();
    }
    sending[sending_count++] = (struct sending){f->stream, f->epoch, f->way, f->frame, true};
}

static void close_sending(uint32_t stream, uint32_t epoch, uint64_t frame, uint32_t way)
{
    for (size_t i = 0; i < sending_count; i++) {
        struct sending *s = &sending[i];

        if (s->open && s->stream == stream && s->epoch == epoch && s->frame == frame &&
            s->way == way) {
            *s = sending[--sending_count];
            return;
        }
    }
}

uint32_t boards_open(uint32_t stream, uint32_t epoch, uint32_t way)
{
    uint32_t count = 0;

    for (size_t i = 0; i < sending_count; i++) {
        const struct sending *s = &sending[i];

        count += s->stream == stream && s->epoch == epoch && s->way == way;
    }
    return count;
}

void boards_close(const struct lnk_message *m)
{
    if (m->header.type == LNK_FRAME) {
        close_sending(m->frame.stream, m->frame.epoch, m->frame.frame, m->frame.way);
    } else if (m->header.type == LNK_ANSWER) {
        close_sending(m->answer.stream, m->answer.epoch, m->answer.frame, m->answer.way);
    } else if (m->header.type == LNK_ERROR && m->error.frame) {
        close_sending(m->error.stream, m->error.epoch, m->error.frame, m->error.way);
    }
}

/* ---- the wire ---- */

/* @type: of messages; 0: all. */
static void drop_packets(size_t from, size_t to, unsigned type)
{
    for (struct packet **at = &packets; *at;) {
        struct packet *p = *at;
        struct lnk_message m;

        packet_read(p, &m);
        if (p->from == from && p->to == to && (type == 0 || type == m.header.type)) {
            packet_take(at);
            boards_close(&m);
            packet_free(p);
        } else {
            at = &(*at)->next;
        }
    }
}

static int head_sends(struct lnk_transport *t, size_t peer, enum lnk_lane lane,
                      struct lnk_bytes first, const struct lnk_bytes *range, size_t count,
                      void (*released)(void *), void *arg)
{
    struct packet *p;
    struct lnk_message m;

    (void)t;
    if (!sees[SELF][peer]) {
        return LNK_E_DOWN;
    }
    if (boards_by_chance(chance.full)) {
        return LNK_E_FULL;
    }
    if (boards_by_chance(chance.no_memory)) {
        return -ENOMEM;
    }
    p = packet_put(SELF, peer, lane, first, range, count);
    p->released = released;
    p->arg = arg;
    packet_read(p, &m);
    if (m.header.type == LNK_FRAME && m.frame.hop == 0) {
        open_sending(&m.frame);
        boards_told.sent(&m.frame, p->part);
    }
    return 0;
}

static const struct lnk_code code = {.kind = "fake", .send = head_sends};

/* A board sends. Return: false: the other is away. */
bool boards_put(size_t from, size_t to, struct lnk_message *m, uint64_t *value, size_t tensors)
{
    struct lnk_bytes range[LNK_PARTS_MAX] = {{0}};
    uint8_t first[LNK_FIRST_MAX];
    size_t bytes;

    for (size_t i = 0; i < tensors; i++) {
        m->tensor[i] =
            (struct lnk_tensor){.dtype = LNK_I64, .rank = 1, .dim = {1}, .bytes = sizeof(*value)};
        range[i] = (struct lnk_bytes){&value[i], sizeof(*value)};
    }
    if (from == SELF && to == SELF) {
        struct lnk_message here = *m;

        here.part = range;
        head_takes(&head, SELF, &here);
        return true;
    }
    if (!sees[from][to]) {
        return false;
    }
    bytes = lnk_put(m, tensors * sizeof(*value), first);
    if (bytes == 0) {
        abort();
    }
    packet_put(from, to, LNK_BULK, (struct lnk_bytes){first, bytes}, range, tensors);
    return true;
}

void boards_put_error(size_t from, size_t to, struct lnk_error e, const char *text)
{
    struct lnk_message m = {.header.type = LNK_ERROR, .error = e};

    m.tail = (const uint8_t *)text;
    m.tail_bytes = strlen(text);
    if (!boards_put(from, to, &m, NULL, 0) && e.frame) {
        boards_close(&m);
    }
}

/* As links_take(). */
static void head_takes(struct link *l, size_t from, const struct lnk_message *m)
{
    if (m->header.type == LNK_CREDIT) {
        route_credit(l, from, m);
    } else if (m->header.type == LNK_ANSWER) {
        boards_close(m);
        route_answer(l, from, m);
    } else if (m->header.type == LNK_ERROR) {
        bool ours = route_error(l, from, m);

        boards_close(m);
        if (!ours) {
            board_takes(SELF, from, m);
        }
    } else {
        if (from == SELF && m->header.type == LNK_FRAME && m->frame.hop == 0) {
            open_sending(&m->frame);
            boards_told.sent(&m->frame, m->part);
        }
        board_takes(SELF, from, m);
    }
}

/* A frozen board takes nothing; what it sent before still comes. */
static bool may_come(const struct packet *p)
{
    return !broken[p->from][p->to] && !board[p->to].frozen;
}

bool boards_deliver(void)
{
    struct packet **at = packet_choose(false, may_come), *p = *at;
    struct lnk_message m;
    bool again;

    if (!p) {
        return false;
    }
    packet_take(at);
    packet_read(p, &m);
    again = m.header.type == LNK_ANSWER && boards_by_chance(chance.twice);
    if (p->to == SELF) {
        head_takes(&head, p->from, &m);
    } else {
        board_takes(p->to, p->from, &m);
    }
    if (again) { /* at any time */
        packet_put(p->from, p->to, p->lane, (struct lnk_bytes){p->first, p->first_bytes}, p->part,
                   p->parts);
    }
    packet_free(p);
    return true;
}

/* ---- what may happen to boards and cables ---- */

/* @of notices that @lost is away. */
static void notice(size_t of, size_t lost)
{
    if (!sees[of][lost]) {
        return;
    }
    sees[of][lost] = false;
    if (of == SELF) {
        head.peer[lost].joined = head.peer[lost].up = false;
    }
    for (struct packet *p = packets; p; p = p->next) {
        if (p->from == of && p->to == lost) {
            packet_release(p); /* the bytes may be there, and arrive after all */
        }
    }
    if (broken[of][lost]) {
        drop_packets(of, lost, 0);
    }
    if (of == SELF) {
        route_peer_gone(&head, lost);
    }
    for (size_t i = 0; i < PLACES; i++) {
        struct place *p = &board[of].place[i];
        bool next = false;

        for (size_t k = 0; p->used && k < p->next_count; k++) {
            next |= p->next[k] == lost;
        }
        if (p->used && lost == SELF && of != SELF) {
            p->used = false;
        } else if (next) {
            board_lose_place(of, p, lost);
        }
    }
}

static void join(size_t a, size_t b)
{
    if (sees[a][b] && sees[b][a]) {
        broken[a][b] = broken[b][a] = false; /* nobody noticed */
        return;
    }
    notice(a, b); /* both ends know before it is up again */
    notice(b, a);
    drop_packets(a, b, LNK_PLAN); /* answers of then may still come; plans are read in order */
    broken[a][b] = broken[b][a] = false;
    sees[a][b] = sees[b][a] = true;
    for (size_t i = 0; i < 2; i++) {
        size_t other = i ? a : b;

        if ((i ? b : a) == SELF && other < BOARDS_MAX) {
            head.peer[other].joined = head.peer[other].up = true;
            head.peer[other].pings_lost = 0;
        }
    }
}

/* Another process: nothing of the last one comes or arrives any more. */
static void restart(size_t b)
{
    board_forget_frames(b);
    board[b] = (struct board){0};
    for (size_t i = 0; i <= board_count; i++) {
        size_t other = boards_nth(i);

        if (other != b) {
            drop_packets(b, other, 0);
            drop_packets(other, b, 0);
            notice(other, b);
            sees[b][other] = false;
        }
    }
}

void boards_change(void)
{
    size_t a = boards_nth((size_t)t_range(0, (int64_t)board_count)),
           b = (size_t)t_range(0, (int64_t)board_count - 1);

    if (a == b) {
        a = SELF;
    }
    switch (t_random() % 16) {
    case 0:
        broken[a][b] = broken[b][a] = true;
        break;
    case 1: /* what is silent is noticed; one end may be earlier */
        if (broken[a][b] || board[b].frozen) {
            notice(a, b);
        }
        break;
    case 2:
        if (broken[a][b] || (a != SELF && board[a].frozen)) {
            notice(b, a);
        }
        break;
    case 3:
        board[b].frozen = true;
        break;
    case 4: /* it was silent for a while, and sends what it has all the same */
    case 5:
    case 6:
        notice(SELF, b);
        break;
    case 7:
        restart(b);
        break;
    case 8:
        head.peer[b].pings_lost += board[b].frozen || broken[SELF][b];
        break;
    default: /* things get better more often than worse */
        board[b].frozen = false;
        if (t_random() % 2) {
            join(a, b);
        }
    }
}

void boards_heal(void)
{
    for (size_t i = 0; i < board_count; i++) {
        board[i].frozen = false;
        for (size_t k = 0; k < i; k++) {
            join(i, k);
        }
        join(SELF, i);
    }
}

bool boards_holding(uint32_t stream, uint64_t frame)
{
    for (const struct packet *p = packets; p; p = p->next) {
        struct lnk_message m;

        if (p->released) {
            packet_read(p, &m);
            if (m.header.type == LNK_FRAME && m.frame.stream == stream && m.frame.frame == frame) {
                return true;
            }
        }
    }
    return false;
}

void boards_begin(size_t count, struct boards_told t)
{
    memset(board, 0, sizeof(board));
    memset(broken, 0, sizeof(broken));
    memset(sees, 0, sizeof(sees));
    boards_told = t;
    chance = (struct boards_chance){0};
    board_count = count;
    sending_count = boards_cancelled = 0;
    clock_ns = BASE_NS_PER_S;
    transport = (struct lnk_transport){.code = &code, .peer_count = count};
    head = (struct link){.take = head_takes, .transport = &transport, .name = "head"};
    snprintf(head.print, sizeof(head.print), "00000000000000ff");
    head.boards.count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(head.boards.board[i].name, sizeof(head.boards.board[i].name), "b%zu", i + 2);
        snprintf(head.peer[i].print, sizeof(head.peer[i].print), "%016zx", i + 1);
        head.peer[i].features = t_random() % 4 ? LNK_HELLO_CANCEL : 0;
        head.peer[i].measure = (struct lnk_measure){0};
        for (size_t k = t_random() % 2 ? 16 : 0; k > 0; k--) { /* else nobody has measured it */
            uint64_t ns = (uint64_t)t_range(100000, 20000000);

            lnk_measure_trip(&head.peer[i].measure, ns);
            lnk_measure_pair(&head.peer[i].measure, LNK_PING_LARGE_BYTES, ns, 2 * ns);
        }
    }
    head.heads = heads_new();
    if (!head.heads) {
        abort();
    }
    boards_heal();
}

void boards_end(void)
{
    for (size_t i = 0; i < board_count; i++) {
        restart(i);
    }
    board_forget_frames(SELF);
    head.heads = heads_free(head.heads);
}
