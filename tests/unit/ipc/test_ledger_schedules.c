/* SPDX-License-Identifier: Apache-2.0 */
/* The head's account of frames, beside boards and links that do anything. */
#include "apps/link/common/ledger.h"
#include "tests/harness.h"

#define EXPIRED 7u
#define REFUSED 6u

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
