/* SPDX-License-Identifier: Apache-2.0 */
/* The head's account of frames: rules one by one, then boards and links that do anything. */
#include "ipc/link/ledger.h"
#include "tests/harness.h"

#define EXPIRED 7u
#define REFUSED 6u

static struct lnk_ledger *make(uint32_t capacity, uint32_t window, uint32_t ways)
{
    struct lnk_way way[LNK_WAYS_MAX];
    struct lnk_ledger *l = NULL;

    lnk_ledger_new(capacity, &l);
    for (uint32_t i = 0; i < ways; i++) {
        way[i] = (struct lnk_way){window, 1};
    }
    lnk_ledger_begin(l, way, ways);
    return l;
}

TEST(order_and_credits)
{
    struct lnk_ledger *l = make(8, 2, 1);
    struct lnk_done done;
    struct lnk_due due;
    uint64_t frame;
    int inputs[4];

    for (uint64_t i = 0; i < 4; i++) {
        T_EQ(lnk_ledger_admit(l, &inputs[i], 0, &frame), 0);
        T_EQ(frame, i + 1);
    }
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(due.frame, 1);
    T_TRUE(due.input == &inputs[0]);
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), LNK_LEDGER_E_NOTHING); /* two credits */
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, &inputs[1]), 0);
    T_EQ(lnk_ledger_release(l, &done), LNK_LEDGER_E_NOTHING); /* frame 1 is first */
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(due.frame, 3);
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, NULL), LNK_LEDGER_E_DOUBLED);
    T_EQ(lnk_ledger_answer(l, 1, 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_release(l, &done), 0);
    T_EQ(lnk_ledger_release(l, &done), 0);
    T_EQ(done.frame, 2);
    T_TRUE(done.answer == &inputs[1] && done.input == &inputs[1]);
    T_EQ(lnk_ledger_answer(l, 1, 1, 0, 0, NULL), LNK_LEDGER_E_DOUBLED); /* long released */
    T_EQ(lnk_ledger_answer(l, 4, 1, 0, 0, NULL), LNK_LEDGER_E_UNKNOWN); /* never sent */
    T_EQ(lnk_ledger_answer(l, 5, 1, 0, 0, NULL), LNK_LEDGER_E_UNKNOWN);
    T_EQ(lnk_ledger_answer(l, 0, 1, 0, 0, NULL), LNK_LEDGER_E_UNKNOWN);
    T_EQ(lnk_ledger_answer(l, 3, 1, 1, 0, NULL), LNK_LEDGER_E_LATE);    /* another way */
    T_EQ(lnk_ledger_answer(l, 3, 2, 0, 0, NULL), LNK_LEDGER_E_UNKNOWN); /* no such epoch */
    lnk_ledger_free(l);
}

TEST(full_and_limits)
{
    struct lnk_ledger *l = NULL;
    uint64_t frame;

    T_EQ(lnk_ledger_new(0, &l), -EINVAL);
    T_EQ(lnk_ledger_new(LNK_LEDGER_MAX + 1, &l), -EINVAL);
    l = make(2, 1, 1);
    T_EQ(lnk_ledger_admit(l, NULL, 0, &frame), 0);
    T_EQ(lnk_ledger_admit(l, NULL, 0, &frame), 0);
    T_EQ(lnk_ledger_admit(l, NULL, 0, &frame), LNK_LEDGER_E_FULL);
    lnk_ledger_free(l);
    T_TRUE(lnk_ledger_free(NULL) == NULL);
}

TEST(a_loss_sends_again_under_the_same_numbers)
{
    struct lnk_ledger *l = make(8, 4, 1);
    struct lnk_way way = {4, 1};
    struct lnk_ledger_counts c;
    struct lnk_done done;
    struct lnk_due due;
    uint64_t frame;

    for (int i = 0; i < 3; i++) {
        lnk_ledger_admit(l, NULL, 0, &frame);
        T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    }
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_void(l, 1, LNK_ALL_WAYS), 2);
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), LNK_LEDGER_E_NOTHING); /* no epoch takes them yet */
    T_EQ(lnk_ledger_answer(l, 1, 1, 0, 0, NULL), LNK_LEDGER_E_LATE);
    T_EQ(lnk_ledger_begin(l, &way, 1), 2);
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(due.frame, 1);
    T_EQ(due.times, 2);
    T_EQ(due.epoch, 2);
    T_EQ(lnk_ledger_answer(l, 1, 1, 0, 0, NULL), LNK_LEDGER_E_LATE); /* the frozen board wakes */
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(due.frame, 3);
    T_EQ(lnk_ledger_answer(l, 3, 2, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_answer(l, 1, 2, 0, 5, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        T_EQ(lnk_ledger_release(l, &done), 0);
        T_EQ(done.frame, i);
        T_EQ(done.status, i == 1 ? 5 : 0);
    }
    lnk_ledger_counts(l, &c);
    T_EQ(c.resent, 2);
    T_EQ(c.sent, 5);
    T_EQ(c.late, 2);
    T_EQ(c.waiting + c.in_flight + c.held, 0);
    lnk_ledger_free(l);
}

TEST(a_switch_lets_frames_in_flight_be)
{
    struct lnk_ledger *l = make(8, 2, 1);
    struct lnk_way way = {2, 1};
    struct lnk_due due;
    uint64_t frame;

    for (int i = 0; i < 4; i++) {
        lnk_ledger_admit(l, NULL, 0, &frame);
    }
    lnk_ledger_next(l, 0, EXPIRED, &due);
    lnk_ledger_next(l, 0, EXPIRED, &due);
    T_EQ(lnk_ledger_begin(l, &way, 1), 2);
    /* The board is the same, and has its credits only once. */
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), LNK_LEDGER_E_NOTHING);
    T_EQ(lnk_ledger_answer(l, 1, 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
    T_EQ(due.frame, 3);
    T_EQ(due.epoch, 2);
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_answer(l, 3, 1, 0, 0, NULL), LNK_LEDGER_E_LATE);
    lnk_ledger_free(l);
}

TEST(ways_share_by_speed)
{
    struct lnk_way way[2] = {{100, 1}, {100, 3}};
    struct lnk_ledger *l = make(100, 1, 0);
    uint32_t count[2] = {0};
    struct lnk_due due;
    uint64_t frame;

    lnk_ledger_begin(l, way, 2);
    for (int i = 0; i < 40; i++) {
        lnk_ledger_admit(l, NULL, 0, &frame);
        T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
        count[due.way]++;
    }
    T_EQ(count[0], 30);
    T_EQ(lnk_ledger_void(l, 2, 1), 10); /* one copy is lost; the other keeps its frames */
    for (int i = 0; i < 10; i++) {
        T_EQ(lnk_ledger_next(l, 0, EXPIRED, &due), 0);
        T_EQ(due.way, 0);
        T_EQ(due.times, 2);
    }
    lnk_ledger_free(l);
}

/* Boards that answer one frame after another, each in the period of its way. */
struct simulated {
    struct lnk_ledger *l;
    const struct lnk_way *way;
    uint32_t ways, clients_frames; /* frames that clients have unanswered */
    struct {
        uint64_t frame[64];
        size_t count;
        double done; /* when the first of them is finished */
    } board[LNK_WAYS_MAX];
    uint32_t answered_by[LNK_WAYS_MAX];
};

static void simulated_send(struct simulated *s, double now)
{
    struct lnk_due due;

    while (lnk_ledger_next(s->l, 1, EXPIRED, &due) == 0) {
        size_t *count = &s->board[due.way].count;

        if (*count == 0) {
            s->board[due.way].done = now + s->way[due.way].period;
        }
        s->board[due.way].frame[(*count)++] = due.frame;
    }
}

/* Return: frames a unit of time that come out in order. */
static double simulated_rate(struct simulated *s, uint32_t frames)
{
    struct lnk_done done;
    uint32_t released = 0;
    uint64_t frame;
    double now = 0;

    lnk_ledger_new(128, &s->l);
    lnk_ledger_begin(s->l, s->way, s->ways);
    for (uint32_t i = 0; i < s->clients_frames; i++) {
        lnk_ledger_admit(s->l, NULL, 0, &frame);
    }
    while (released < frames) {
        uint32_t next = LNK_WAYS_MAX;

        simulated_send(s, now);
        for (uint32_t i = 0; i < s->ways; i++) {
            if (s->board[i].count > 0 &&
                (next == LNK_WAYS_MAX || s->board[i].done < s->board[next].done)) {
                next = i;
            }
        }
        if (next == LNK_WAYS_MAX) {
            break; /* nobody has a frame */
        }
        now = s->board[next].done;
        s->board[next].done += s->way[next].period;
        s->answered_by[next]++;
        lnk_ledger_answer(s->l, s->board[next].frame[0], 1, next, 0, NULL);
        memmove(s->board[next].frame, s->board[next].frame + 1,
                --s->board[next].count * sizeof(uint64_t));
        for (; lnk_ledger_release(s->l, &done) == 0; released++) {
            lnk_ledger_admit(s->l, NULL, 0, &frame);
        }
    }
    s->l = lnk_ledger_free(s->l);
    return now > 0 ? released / now : 0;
}

TEST(a_slow_way_does_not_hold_up_the_others)
{
    struct lnk_way way[3] = {{5, 1}, {10, 6.3}, {4, 1.5}};
    struct simulated two = {.way = way, .ways = 2, .clients_frames = 15};
    struct simulated three = {.way = way, .ways = 3, .clients_frames = 19};
    struct simulated few = {.way = way, .ways = 2, .clients_frames = 4};

    T_TRUE(simulated_rate(&two, 3000) > 0.97 * (1 + 1 / 6.3));
    T_TRUE(simulated_rate(&three, 3000) > 0.97 * (1 + 1 / 6.3 + 1 / 1.5));
    T_TRUE(simulated_rate(&few, 3000) > 0.99); /* too few to gain by the slow one */
    T_EQ(few.answered_by[1], 0);
}

TEST(deadlines_unsend_and_refuse)
{
    struct lnk_ledger *l = make(8, 8, 1);
    struct lnk_done done;
    struct lnk_due due;
    uint64_t frame;

    lnk_ledger_admit(l, NULL, 100, &frame);
    lnk_ledger_admit(l, NULL, 500, &frame);
    T_EQ(lnk_ledger_next(l, 100, EXPIRED, &due), 0);
    T_EQ(due.frame, 2);
    T_EQ(due.left_ns, 400);
    lnk_ledger_unsend(l, &due);
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, NULL), LNK_LEDGER_E_UNKNOWN); /* it was not sent */
    T_EQ(lnk_ledger_next(l, 200, EXPIRED, &due), 0);
    T_EQ(due.times, 1);
    T_EQ(lnk_ledger_release(l, &done), 0);
    T_EQ(done.status, EXPIRED);
    lnk_ledger_admit(l, NULL, 0, &frame);
    T_EQ(lnk_ledger_refuse(l, REFUSED), 1); /* what is sent is not refused */
    T_EQ(lnk_ledger_answer(l, 2, 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_release(l, &done), 0);
    T_EQ(lnk_ledger_release(l, &done), 0);
    T_EQ(done.frame, 3);
    T_EQ(done.status, REFUSED);
    for (int i = 0; i < 30; i++) { /* numbers stay apart when the ring goes round */
        T_EQ(lnk_ledger_admit(l, NULL, 0, &frame), 0);
        T_EQ(lnk_ledger_refuse(l, REFUSED), 1);
        T_EQ(lnk_ledger_release(l, &done), 0);
        T_EQ(done.frame, frame);
    }
    lnk_ledger_free(l);
}

/* The world around the ledger: what boards hold, and what is on its way. Anything of it may arrive
 * late, twice, in any order or never. */
#define AIR 256u
struct flying {
    struct lnk_due due;
    bool answered, waits; /* waits: the head counts it as in flight */
};
struct world {
    struct lnk_ledger *l;
    struct flying air[AIR];
    size_t count;
    uint32_t epoch, ways;
    bool dead[LNK_WAYS_MAX]; /* of the present epoch */
    uint32_t window[LNK_WAYS_MAX];
    uint64_t now, next_admitted, next_released;
};

/* Frames that a board has, as far as the head can know. */
static uint32_t in_flight(const struct world *w, uint32_t way)
{
    uint32_t count = 0;

    for (size_t i = 0; i < w->count; i++) {
        count += w->air[i].due.way == way && w->air[i].waits;
    }
    return count;
}

static void forget(struct world *w, uint32_t way)
{
    for (size_t i = 0; i < w->count; i++) {
        if (way == LNK_ALL_WAYS || w->air[i].due.way == way) {
            w->air[i].waits = false;
        }
    }
}

static void send_due(struct world *w)
{
    struct lnk_due due;

    while (w->count < AIR && lnk_ledger_next(w->l, w->now, EXPIRED, &due) == 0) {
        uint64_t chance = t_random() % 16;

        T_EQ(due.epoch, w->epoch);
        T_LT(due.way, w->ways);
        T_TRUE(!w->dead[due.way]);
        T_TRUE(in_flight(w, due.way) < w->window[due.way]);
        /* The input is the frame's own, however often it is sent. */
        T_EQ((uintptr_t)due.input, due.frame);
        if (chance == 0) {
            lnk_ledger_unsend(w->l, &due);
            return;
        }
        if (chance > 1) { /* else lost with its board, sooner or later noticed */
            w->air[w->count++] = (struct flying){due, false, true};
        } else {
            w->dead[due.way] = true;
            lnk_ledger_void(w->l, w->epoch, due.way);
            forget(w, due.way);
        }
    }
}

static void something_arrives(struct world *w)
{
    size_t i = w->count ? (size_t)t_range(0, (int64_t)w->count - 1) : 0;
    struct flying *f = &w->air[i];
    uint32_t status = t_random() % 8 == 0 ? 3 : 0;
    int rc;

    if (w->count == 0) {
        return;
    }
    rc = lnk_ledger_answer(w->l, f->due.frame, f->due.epoch, f->due.way, status,
                           (void *)(uintptr_t)(status ? 0 : f->due.frame * 1000));
    T_NE(rc, LNK_LEDGER_E_UNKNOWN); /* all of it was really sent */
    if (f->answered) {
        T_NE(rc, 0); /* one answer of one sending counts once */
    }
    f->answered = true;
    f->waits = false;
    if (t_random() % 4 != 0) { /* else it comes once more, later */
        *f = w->air[--w->count];
    }
}

static void new_epoch(struct world *w)
{
    struct lnk_way way[LNK_WAYS_MAX];

    if (t_random() % 3 != 0) {
        lnk_ledger_void(w->l, w->epoch, LNK_ALL_WAYS);
        forget(w, LNK_ALL_WAYS);
    }
    w->ways = (uint32_t)t_range(0, 4);
    for (uint32_t i = 0; i < w->ways; i++) {
        way[i] = (struct lnk_way){(uint32_t)t_range(0, 6), (double)t_range(1, 9)};
        w->dead[i] = false;
        w->window[i] = way[i].window;
    }
    w->epoch = lnk_ledger_begin(w->l, way, w->ways);
}

static void release_all(struct world *w)
{
    struct lnk_done done;

    while (lnk_ledger_release(w->l, &done) == 0) {
        T_EQ(done.frame, w->next_released);
        T_EQ((uintptr_t)done.input, done.frame);
        T_EQ((uintptr_t)done.answer, done.status ? 0 : done.frame * 1000);
        w->next_released++;
    }
}

static void one_event(struct world *w)
{
    struct lnk_ledger_counts c;
    uint64_t frame;
    uint32_t way;

    w->now += (uint64_t)t_range(0, 3);
    switch (t_random() % 16) {
    case 0: /* a board or link is gone: its frames in the air may still arrive */
        way = (uint32_t)t_range(0, 4);
        if (way < w->ways) {
            lnk_ledger_void(w->l, w->epoch, way);
            forget(w, way);
            w->dead[way] = true;
        }
        break;
    case 1:
        new_epoch(w);
        break;
    case 2:
        if (t_random() % 8 == 0) {
            lnk_ledger_refuse(w->l, REFUSED);
        }
        break;
    case 3:
        way = (uint32_t)t_range(0, 5);
        if (way < w->ways && !w->dead[way]) {
            w->window[way] = (uint32_t)t_range(0, 8);
            lnk_ledger_window(w->l, w->epoch, way, w->window[way]);
        } else if (way >= w->ways) {
            lnk_ledger_window(w->l, w->epoch, way, 1000); /* no such way: ignored */
        }
        lnk_ledger_window(w->l, w->epoch - 1, 0, 1000); /* of an epoch before: ignored */
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        if (lnk_ledger_admit(w->l, (void *)(uintptr_t)w->next_admitted,
                             t_random() % 4 ? 0 : w->now + (uint64_t)t_range(1, 40), &frame) == 0) {
            T_EQ(frame, w->next_admitted);
            w->next_admitted++;
        }
        break;
    default:
        something_arrives(w);
    }
    send_due(w);
    release_all(w);
    lnk_ledger_counts(w->l, &c);
    T_EQ(c.admitted, c.released + c.waiting + c.in_flight + c.held);
}

/* Who left: its frames are not sent, neither for the first time nor again. */
TEST(frames_that_nobody_wants_are_not_sent)
{
    struct lnk_ledger *l = make(8, 1, 1);
    struct lnk_ledger_counts c;
    struct lnk_done done;
    struct lnk_due due;
    uint64_t frame[4];
    int inputs[4];

    for (size_t i = 0; i < 4; i++) {
        T_EQ(lnk_ledger_admit(l, &inputs[i], 0, &frame[i]), 0);
    }
    T_EQ(lnk_ledger_next(l, 1, EXPIRED, &due), 0);
    T_EQ(due.frame, frame[0]);
    T_EQ(lnk_ledger_cancel(l, frame[0], REFUSED), LNK_LEDGER_E_SENT);
    T_EQ(lnk_ledger_cancel(l, frame[1], REFUSED), 0);
    T_EQ(lnk_ledger_cancel(l, frame[1], REFUSED), LNK_LEDGER_E_DOUBLED);
    T_EQ(lnk_ledger_cancel(l, 99, REFUSED), LNK_LEDGER_E_UNKNOWN);
    T_EQ(lnk_ledger_cancel(l, 0, REFUSED), LNK_LEDGER_E_UNKNOWN);
    T_EQ(lnk_ledger_void(l, 1, LNK_ALL_WAYS), 1);
    lnk_ledger_window(l, 1, 0, 8);
    T_EQ(lnk_ledger_next(l, 1, EXPIRED, &due), 0);
    T_EQ(due.frame, frame[2]); /* the first one is not sent again */
    T_EQ(lnk_ledger_answer(l, frame[2], 1, 0, 0, NULL), 0);
    T_EQ(lnk_ledger_next(l, 1, EXPIRED, &due), 0);
    T_EQ(due.frame, frame[3]);
    T_EQ(lnk_ledger_cancel(l, frame[3], REFUSED), LNK_LEDGER_E_SENT);
    T_EQ(lnk_ledger_answer(l, frame[3], 1, 0, 0, NULL), 0); /* it was too late: as usual */
    for (size_t i = 0; i < 4; i++) {
        T_EQ(lnk_ledger_release(l, &done), 0);
        T_EQ(done.frame, frame[i]);
        T_EQ(done.status, i < 2 ? REFUSED : 0);
    }
    lnk_ledger_counts(l, &c);
    T_EQ(c.cancelled, 2);
    T_EQ(c.waiting + c.in_flight + c.held, 0);
    lnk_ledger_free(l);
}

TEST(any_schedule_answers_each_frame_once_in_order)
{
    for (int run = 0; run < t_times(400); run++) {
        struct world w = {.next_admitted = 1, .next_released = 1};
        struct lnk_way way = {64, 1};
        struct lnk_due due;
        uint32_t epoch;

        T_EQ(lnk_ledger_new((uint32_t)t_range(1, 40), &w.l), 0);
        new_epoch(&w);
        for (int i = 0; i < 2000; i++) {
            one_event(&w);
        }
        /* Then one good board is left, and all ends well. */
        lnk_ledger_void(w.l, w.epoch, LNK_ALL_WAYS);
        epoch = lnk_ledger_begin(w.l, &way, 1);
        while (lnk_ledger_next(w.l, w.now, EXPIRED, &due) == 0) {
            T_EQ(lnk_ledger_answer(w.l, due.frame, epoch, 0, 0,
                                   (void *)(uintptr_t)(due.frame * 1000)),
                 0);
        }
        release_all(&w);
        lnk_ledger_free(w.l);
        T_EQ(w.next_released, w.next_admitted);
    }
}

TEST_MAIN()
