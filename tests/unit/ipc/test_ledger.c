/* SPDX-License-Identifier: Apache-2.0 */
/* The head's account of frames: its rules one by one. */
#include "apps/link/common/ledger.h"
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

TEST_MAIN()
