/* SPDX-License-Identifier: Apache-2.0 */
/* Boards that compute: their places in routes, and the frames that they have. */
#include "tests/unit/ipc/fake_boards_private.h"

static struct place *find_place(size_t b, uint32_t stream, uint32_t epoch, uint16_t hop)
{
    for (size_t i = 0; i < PLACES; i++) {
        struct place *p = &board[b].place[i];

        if (p->used && p->plan.stream == stream && p->plan.epoch == epoch && p->plan.hop == hop) {
            return p;
        }
    }
    return NULL;
}

static struct lnk_error place_error(const struct lnk_plan *p, uint16_t status)
{
    return (struct lnk_error){
        .stream = p->stream, .epoch = p->epoch, .hop = p->hop, .status = status};
}

static struct lnk_error frame_error(const struct lnk_frame *f, uint16_t status)
{
    return (struct lnk_error){.stream = f->stream,
                              .epoch = f->epoch,
                              .frame = f->frame,
                              .hop = f->hop,
                              .status = status,
                              .way = (uint16_t)f->way};
}

void board_lose_place(size_t b, struct place *p, size_t to)
{
    p->used = false;
    boards_put_error(b, SELF, place_error(&p->plan, PIPED_UNAVAILABLE), link_print(&head, to));
}

/* Reads the second line of a plan. */
static void read_next(const struct lnk_message *m, struct place *p)
{
    struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    char text[LNK_PLAN_TEXT_MAX + 1], *line, *end;
    size_t count = 0;

    memcpy(text, m->tail, m->tail_bytes);
    text[m->tail_bytes] = 0;
    line = strchr(text, '\n') + 1;
    end = strchr(line, '\n');
    *end = 0;
    if (brd_hops_parse(line, hop, &count) != 0 || count != m->plan.hop_count) {
        abort();
    }
    for (size_t i = 0; m->plan.hop + 1u < count && i < hop[m->plan.hop + 1].board_count; i++) {
        p->next[p->next_count++] = link_find(&head, hop[m->plan.hop + 1].board[i].print);
    }
    free(hop);
}

static void offer(size_t b, struct place *p)
{
    struct lnk_message m = {.header.type = LNK_CREDIT};

    for (size_t i = 0; i < p->next_count; i++) {
        if (p->next[i] != b && !sees[b][p->next[i]]) {
            board_lose_place(b, p, p->next[i]);
            return;
        }
    }
    if (boards_by_chance(chance.refuse_place)) {
        p->used = false;
        boards_put_error(b, SELF, place_error(&p->plan, PIPED_UNSUPPORTED), "it does not like it");
    } else if (!boards_by_chance(chance.silent)) {
        m.credit = (struct lnk_credit){.stream = p->plan.stream,
                                       .epoch = p->plan.epoch,
                                       .hop = p->plan.hop,
                                       .depth = (uint16_t)t_range(0, 4),
                                       .credits = (uint32_t)t_range(1, 8),
                                       .frame_bytes = 16};
        boards_put(b, SELF, &m, NULL, 0);
    }
}

static void take_plan(size_t b, const struct lnk_message *m)
{
    struct place *p;

    if (m->plan.hop_count == 0) {
        for (size_t i = 0; i < PLACES; i++) {
            p = &board[b].place[i];
            p->used =
                p->used && (p->plan.stream != m->plan.stream || p->plan.epoch >= m->plan.epoch);
        }
        return;
    }
    p = find_place(b, m->plan.stream, m->plan.epoch, m->plan.hop);
    for (size_t i = 0; i < PLACES && !p; i++) {
        if (!board[b].place[i].used) {
            p = &board[b].place[i];
            *p = (struct place){.used = true, .plan = m->plan};
            read_next(m, p);
        }
    }
    if (p) {
        offer(b, p);
    } else {
        boards_put_error(b, SELF, place_error(&m->plan, PIPED_RESOURCE_EXHAUSTED),
                         "too many places");
    }
}

static void take_frame(size_t b, size_t from, const struct lnk_message *m)
{
    struct held *h;

    if (!find_place(b, m->frame.stream, m->frame.epoch, m->frame.hop)) {
        boards_put_error(b, from, frame_error(&m->frame, PIPED_NOT_FOUND), "no such place");
    } else if (boards_by_chance(chance.refuse_frame)) {
        boards_put_error(b, SELF, frame_error(&m->frame, PIPED_RESOURCE_EXHAUSTED), "no room");
    } else {
        h = malloc(sizeof(*h));
        *h = (struct held){board[b].held, m->frame, clock_ns, 0};
        memcpy(&h->value, m->part[0].data, sizeof(h->value));
        board[b].held = h;
    }
}

/* Its head wants a frame no more: it is not computed if it is here. */
static void take_cancel(size_t b, const struct lnk_cancel *m)
{
    for (struct held **at = &board[b].held; *at; at = &(*at)->linked) {
        struct held *h = *at;

        if (h->frame.stream == m->stream && h->frame.epoch == m->epoch &&
            h->frame.frame == m->frame) {
            boards_cancelled++;
            boards_put_error(b, SELF, frame_error(&h->frame, PIPED_CANCELLED), "cancelled");
            *at = h->linked;
            free(h);
            return;
        }
    }
}

void board_takes(size_t b, size_t from, const struct lnk_message *m)
{
    if (m->header.type == LNK_PLAN) {
        take_plan(b, m);
    } else if (m->header.type == LNK_FRAME) {
        take_frame(b, from, m);
    } else if (m->header.type == LNK_CANCEL) {
        take_cancel(b, &m->cancel);
    } else if (m->header.type == LNK_ERROR && m->error.hop > 0) {
        struct place *p =
            find_place(b, m->error.stream, m->error.epoch, (uint16_t)(m->error.hop - 1));

        boards_close(m);
        if (p) {
            board_lose_place(b, p, from);
        }
    }
}

static uint64_t by_units(uint64_t value, uint32_t first, uint32_t last)
{
    for (uint32_t u = first; u <= last; u++) {
        value = value * 6364136223846793005ull + u + 1;
    }
    return value;
}

uint64_t boards_ns(uint32_t epoch, uint32_t way)
{
    return 10000 + LINK_BOARDS * (uint64_t)epoch + way;
}

uint64_t boards_answer(uint64_t input)
{
    return by_units(input, 0, UNITS - 1);
}

static void send_answer(size_t b, const struct held *h, uint64_t result)
{
    const uint64_t times[] = {1000, boards_ns(h->frame.epoch, h->frame.way) - 1000};
    uint64_t value[2] = {result, ~result};
    struct lnk_message m = {.header.type = LNK_ANSWER};

    m.answer = (struct lnk_answer){.stream = h->frame.stream,
                                   .epoch = h->frame.epoch,
                                   .frame = h->frame.frame,
                                   .hop = h->frame.hop,
                                   .tensor_count = boards_by_chance(chance.odd_answer) ? 1 : 2,
                                   .time_count = 2,
                                   .way = h->frame.way};
    m.tail = (const uint8_t *)times;
    m.tail_bytes = sizeof(times);
    if (!boards_put(b, SELF, &m, value, m.answer.tensor_count)) {
        boards_close(&m);
    }
}

static void send_on(size_t b, const struct held *h, struct place *p, uint64_t left_ns,
                    uint64_t result)
{
    size_t to = p->next[t_random() % p->next_count];
    struct lnk_message m = {.header.type = LNK_FRAME, .frame = h->frame};

    m.frame.left_ns = left_ns;
    m.frame.hop++;
    m.frame.tensor_count = 1;
    m.frame.time_count = 0;
    if (to == b && b != SELF) {
        struct lnk_bytes part = {&result, sizeof(result)};

        m.part = &part;
        take_frame(b, b, &m);
    } else if (!boards_put(b, to, &m, &result, 1)) {
        boards_close(&m);
        board_lose_place(b, p, to);
    }
}

static void compute(size_t b, const struct held *h)
{
    struct place *p = find_place(b, h->frame.stream, h->frame.epoch, h->frame.hop);
    uint64_t left_ns = h->frame.left_ns, result, passed_ns = clock_ns - h->came_ns;

    if (!p) {
        boards_close(&(struct lnk_message){.header.type = LNK_FRAME, .frame = h->frame});
        return;
    }
    if (left_ns && passed_ns >= left_ns) {
        boards_put_error(b, SELF, frame_error(&h->frame, PIPED_DEADLINE_EXCEEDED), "late");
        return;
    }
    if (boards_by_chance(chance.final_error)) {
        boards_told.failed(h->frame.stream, h->frame.frame);
        boards_put_error(b, SELF, frame_error(&h->frame, PIPED_INTERNAL), "it failed");
        return;
    }
    result = by_units(h->value, p->plan.first_unit, p->plan.last_unit);
    if (p->plan.hop + 1u == p->plan.hop_count) {
        send_answer(b, h, result);
    } else {
        send_on(b, h, p, left_ns ? left_ns - passed_ns : 0, result);
    }
}

/* Any frame of any board: a board may compute several at once. */
bool boards_compute(void)
{
    size_t count = 0, n;

    for (size_t i = 0; i <= board_count; i++) {
        const struct board *b = &board[boards_nth(i)];

        for (const struct held *h = b->frozen ? NULL : b->held; h; h = h->linked) {
            count++;
        }
    }
    n = count ? (size_t)t_random() % count : 0;
    for (size_t i = 0; count && i <= board_count; i++) {
        struct board *b = &board[boards_nth(i)];

        for (struct held **at = &b->held; !b->frozen && *at; at = &(*at)->linked) {
            if (n-- == 0) {
                struct held *h = *at;

                *at = h->linked;
                compute(boards_nth(i), h);
                free(h);
                return true;
            }
        }
    }
    return false;
}

void board_forget_frames(size_t b)
{
    while (board[b].held) {
        struct held *h = board[b].held;

        boards_close(&(struct lnk_message){.header.type = LNK_FRAME, .frame = h->frame});
        board[b].held = h->linked;
        free(h);
    }
}

size_t boards_places(void)
{
    size_t count = 0;

    for (size_t i = 0; i <= board_count; i++) {
        for (size_t k = 0; k < PLACES; k++) {
            count += board[boards_nth(i)].place[k].used;
        }
    }
    return count;
}
