/* SPDX-License-Identifier: Apache-2.0 */
/* The head of spread models: whatever boards and links do, each frame is answered once, in order,
 * right, or given back; windows hold, and nothing is left over. */
#include "tests/unit/ipc/route_checks.h"

#define SHARE_MAX 5u
#define TURNS 20000

static struct brd_routes routes;
static uint32_t last_number;

/* ---- what happens ---- */

static void submit(size_t model, uint64_t for_ns)
{
    struct frame *f = &frame[frame_count];
    int rc;

    if (frame_count == FRAMES) {
        return;
    }
    *f = (struct frame){.model = model, .withdrawals = withdrawals[model]};
    f->input[0] = frame_count;
    f->input[8] = ~(uint64_t)frame_count;
    f->front = (struct front_frame){.model = names[model],
                                    .input = (const uint8_t *)f->input,
                                    .output = (uint8_t *)f->output,
                                    .deadline_ns = for_ns ? clock_ns + for_ns : 0};
    rc = route_frame(&head, &f->front);
    if (rc != 0) { /* given back at once */
        T_EQ(rc, PIPED_UNAVAILABLE);
        return;
    }
    f->stream = head_by_model(&head, names[model])->stream;
    frame_count++;
}

/* A client leaves, or cancels. */
static void forsake(void)
{
    struct frame *f =
        oldest < frame_count ? &frame[t_range((int64_t)oldest, (int64_t)frame_count - 1)] : NULL;

    if (f && f->answers == 0 && !f->front.gone) {
        f->front.gone = true;
        route_gone(&head, &f->front);
    }
}

static void add_board(struct brd_hop *hop, size_t board)
{
    for (size_t i = 0; i < hop->board_count; i++) {
        if (strcmp(hop->board[i].print, link_print(&head, board)) == 0) {
            return;
        }
    }
    snprintf(hop->board[hop->board_count].print, BRD_FINGERPRINT_BYTES, "%s",
             link_print(&head, board));
    hop->board[hop->board_count++].share = (uint32_t)t_range(1, SHARE_MAX);
}

/* A route of @hops hops over any boards. */
static void set_route(size_t model, size_t hops)
{
    struct brd_route *r = &routes.route[model];

    memset(r, 0, sizeof(*r));
    snprintf(r->model, sizeof(r->model), "%s", names[model]);
    snprintf(r->content, sizeof(r->content), "%s-1", names[model]);
    memset(r->identity, 'a', sizeof(r->identity) - 1);
    r->number = ++last_number;
    r->hop_count = hops;
    for (size_t i = 0; i < hops; i++) {
        r->hop[i].first_unit = (uint32_t)(i * UNITS / hops);
        r->hop[i].last_unit = (uint32_t)((i + 1) * UNITS / hops - 1);
        for (int64_t k = t_range(1, 3); k > 0; k--) {
            size_t board = (size_t)t_range(0, (int64_t)head.boards.count);

            add_board(&r->hop[i], board < head.boards.count ? board : SELF);
        }
    }
    r->input_count = r->output_count = 2;
    for (size_t i = 0; i < 2; i++) {
        r->input[i] = (struct brd_tensor){.dtype = LNK_I64, .rank = 1, .dim = {1}, .bytes = 8};
        r->output[i] = r->input[i];
    }
    routes.count = MODELS;
    route_set(&head, &routes);
}

static void withdraw(size_t model)
{
    withdrawals[model]++;
    routes.route[model].hop_count = 0;
    route_set(&head, &routes);
}

static void change_routes(void)
{
    size_t model = t_random() % MODELS;

    if (t_random() % 6 == 0) {
        withdraw(model);
    } else {
        set_route(model, t_random() % 2 ? 1 : (size_t)t_range(2, 4));
    }
}

/* A daemon wants another route soon when one has failed. */
static void replace_failed(void)
{
    struct brd_route_state state[BRD_ROUTES_MAX];
    size_t count = route_states(&head, state);

    for (size_t i = 0; i < count; i++) {
        if (state[i].phase == BRD_FAILED && t_random() % 8 == 0) {
            set_route(strcmp(state[i].model, names[0]) == 0 ? 0 : 1,
                      t_random() % 2 ? 1 : (size_t)t_range(2, 4));
        }
    }
}

static void one_event(void)
{
    uint64_t event = t_random() % 256;

    if (event < 80) {
        submit(t_random() % MODELS, t_random() % 4 ? 0 : (uint64_t)t_range(1, 20) * MS);
    } else if (event < 160) {
        boards_deliver();
    } else if (event < 232) {
        boards_compute();
    } else if (event < 236) {
        forsake();
    } else if (event < 240) {
        clock_ns += (uint64_t)t_range(0, 3000) * BASE_NS_PER_US;
    } else if (event < 243) {
        clock_ns += (uint64_t)t_range(50, 600) * MS;
    } else if (event < 252) {
        boards_change();
    } else if (event < 255) {
        change_routes();
    } else if (t_random() % 16 == 0) {
        for (int i = 0; i < 100; i++) { /* nothing comes for long */
            pass(400 * MS);
        }
    }
    replace_failed();
    go();
}

/* ---- how it ends ---- */

/* Until all frames are answered. */
static void settle(void)
{
    for (int i = 0; i < TURNS && answered < frame_count; i++) {
        if (!boards_deliver() && !boards_compute()) {
            clock_ns += 100 * MS;
        }
        go();
    }
    T_EQ(answered, frame_count);
    for (size_t i = 0; i < frame_count; i++) {
        T_EQ(frame[i].answers, 1);
    }
}

static void all_ready(void)
{
    size_t ready = 0;

    for (int i = 0; i < TURNS && ready < MODELS; i++) {
        struct brd_route_state state[BRD_ROUTES_MAX];
        size_t count = route_states(&head, state);

        if (!boards_deliver() && !boards_compute()) {
            clock_ns += 100 * MS;
        }
        go();
        ready = 0;
        for (size_t k = 0; k < count; k++) {
            ready += state[k].phase == BRD_READY;
        }
    }
    T_EQ(ready, MODELS);
}

/* All credits are there again: just so many frames are sent, if enough wait that the slowest way
 * is worth its last one. */
static void credits_are_back(size_t model)
{
    const struct head *h = head_by_model(&head, names[model]);
    struct lnk_ledger_counts c;

    T_TRUE(h != NULL);
    lnk_ledger_counts(h->ledger, &c);
    T_EQ(c.waiting + c.in_flight + c.held, 0);
    T_EQ(h->taken, 0);
    for (uint32_t i = 0; i < SHARE_MAX * h->state.frames + 3; i++) {
        submit(model, 0);
    }
    go();
    lnk_ledger_counts(h->ledger, &c);
    T_EQ(c.in_flight, base_min(h->state.frames, HEAD_FRAMES));
    T_LE(1, h->state.window);
    T_LE(h->state.window, h->state.frames);
    settle();
}

/* Routes are taken back: no board has a place any more, even if links are full for a while. */
static void all_is_over(void)
{
    bool any = true;

    routes.count = 0;
    withdrawals[0]++;
    withdrawals[1]++;
    route_set(&head, &routes);
    chance.full = 2;
    for (int i = 0; i < 1000 && any; i++) {
        if (!boards_deliver()) {
            clock_ns += 100 * MS;
        }
        go();
        any = boards_places() > 0;
        for (size_t k = 0; k < BRD_ROUTES_MAX; k++) {
            any = any || head.heads->head[k];
        }
    }
    T_EQ(boards_places(), 0);
    T_TRUE(!any);
}

static void begin(size_t boards)
{
    forget_all();
    memset(&routes, 0, sizeof(routes));
    for (size_t i = 0; i < MODELS; i++) {
        snprintf(routes.route[i].model, sizeof(routes.route[i].model), "%s", names[i]);
    }
    boards_begin(boards, (struct boards_told){failed, sent});
}

static void end_well(void)
{
    boards_heal();
    chance = (struct boards_chance){0};
    for (size_t i = 0; i < MODELS; i++) {
        set_route(i, (size_t)t_range(1, 4));
    }
    settle();
    all_ready();
    for (size_t i = 0; i < MODELS; i++) {
        credits_are_back(i);
    }
    all_is_over();
}

static unsigned maybe(unsigned one_in)
{
    return t_random() % 2 ? one_in : 0;
}

static void one_schedule(void)
{
    begin((size_t)t_range(1, BOARDS_MAX));
    chance = (struct boards_chance){.full = maybe(30),
                                    .no_memory = maybe(200),
                                    .twice = maybe(8),
                                    .refuse_place = maybe(20),
                                    .refuse_frame = maybe(20),
                                    .final_error = maybe(40),
                                    .silent = maybe(4),
                                    .odd_answer = maybe(300)};
    set_route(0, t_random() % 2 ? 1 : (size_t)t_range(2, 4));
    for (int i = 0; i < 3000; i++) {
        one_event();
    }
    end_well();
    boards_end();
}

static void deliver_all(void)
{
    while (boards_deliver()) {
        go();
    }
}

static void begin_ready(size_t boards)
{
    begin(boards);
    set_route(0, 1);
    set_route(1, 1);
    all_ready();
}

TEST(boards_that_answer_errors_are_there)
{
    begin_ready(1);
    chance.final_error = 1;
    submit(0, 0);
    go();
    for (int i = 0; i < 1000; i++) { /* there is always one that waits */
        submit(0, 0);
        go();
        deliver_all();
        T_TRUE(boards_compute());
        deliver_all();
        pass(100 * MS);
    }
    T_EQ(head_by_model(&head, names[0])->state.phase, BRD_READY);
    T_LT(900, answered);
    end_well();
    boards_end();
}

/* All frames of a client that left: those that wait are not sent, boards leave the others. */
TEST(frames_that_nobody_wants_are_not_computed)
{
    struct lnk_ledger_counts before, after;
    struct head *h;

    begin_ready(1);
    head.peer[0].features = LNK_HELLO_CANCEL;
    h = head_by_model(&head, names[0]);
    for (int i = 0; i < 100; i++) {
        submit(0, 0);
    }
    go();
    deliver_all();
    lnk_ledger_counts(h->ledger, &before);
    T_LT(0, before.in_flight);
    T_LT(50, before.waiting);
    for (size_t i = 0; i < frame_count; i++) {
        frame[i].front.gone = true;
        route_gone(&head, &frame[i].front);
    }
    go();
    deliver_all();
    lnk_ledger_counts(h->ledger, &after);
    T_EQ(after.cancelled, before.waiting);
    T_EQ(after.sent, before.sent);
    T_EQ(boards_cancelled, before.in_flight);
    T_EQ(answered, frame_count);
    T_TRUE(!boards_compute());
    for (size_t i = 0; i < frame_count; i++) {
        T_EQ(frame[i].status, PIPED_CANCELLED);
    }
    end_well();
    boards_end();
}

TEST(deadlines_pass_while_no_route_serves)
{
    struct head *h;

    begin_ready(2);
    h = head_by_model(&head, names[0]);
    submit(0, 50 * MS);
    submit(0, 0);
    go();
    head_epoch_fail(h, head_present(h), LINK_NOBODY, LINK_NOBODY, "it is over");
    deliver_all(); /* the transport lets go of the inputs */
    T_EQ(answered, 0);
    pass(60 * MS);
    T_EQ(answered, 1);
    T_EQ(frame[0].status, PIPED_DEADLINE_EXCEEDED);
    end_well();
    boards_end();
}

TEST(any_schedule_answers_each_frame_once_in_order_and_right)
{
    int runs = t_times(getenv("PIPED_TEST_LONG") ? 600 : 60);
    size_t ok = 0, all = 0;

    for (int run = 0; run < runs; run++) {
        t_note("schedule %d", run);
        one_schedule();
        for (size_t i = 0; i < frame_count; i++) {
            ok += frame[i].status == PIPED_OK;
        }
        all += frame_count;
    }
    T_LT(all / 2, ok); /* else the schedules would test nothing */
}

TEST_MAIN()
