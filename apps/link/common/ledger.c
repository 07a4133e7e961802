/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/common/ledger.h"

#include "base/base.h"

enum state { WAITING, SENT, DONE };

struct entry {
    void *input, *answer;
    uint64_t deadline_ns;
    uint32_t epoch, way; /* SENT: under which; DONE: which answered */
    uint32_t times, status;
    uint32_t cancelled; /* status of the answer if it would be sent now; 0: it is wanted */
    enum state state;
};
struct way {
    uint32_t window, in_flight;
    double period;
};
struct lnk_ledger {
    uint32_t capacity, epoch, way_count;
    uint64_t first, end;    /* frames that are not released: first <= frame < end */
    uint64_t maybe_waiting; /* no frame below it waits */
    struct way way[LNK_WAYS_MAX];
    struct lnk_ledger_counts counts;
    struct entry entry[];
};

static struct entry *at(struct lnk_ledger *l, uint64_t frame)
{
    return &l->entry[frame % l->capacity];
}

int lnk_ledger_new(uint32_t capacity, struct lnk_ledger **ret)
{
    struct lnk_ledger *l;

    if (capacity == 0 || capacity > LNK_LEDGER_MAX) {
        return -EINVAL;
    }
    l = calloc(1, sizeof(*l) + capacity * sizeof(l->entry[0]));
    if (!l) {
        return -ENOMEM;
    }
    l->capacity = capacity;
    l->first = l->end = l->maybe_waiting = 1;
    *ret = l;
    return 0;
}

struct lnk_ledger *lnk_ledger_free(struct lnk_ledger *l)
{
    free(l);
    return NULL;
}

uint32_t lnk_ledger_begin(struct lnk_ledger *l, const struct lnk_way *ways, uint32_t count)
{
    l->way_count = base_min(count, LNK_WAYS_MAX);
    for (uint32_t i = 0; i < l->way_count; i++) {
        l->way[i].window = ways[i].window;
        l->way[i].period = ways[i].period > 0 ? ways[i].period : 1;
    }
    return ++l->epoch;
}

/* A frame in flight is so no longer. */
static void leave_way(struct lnk_ledger *l, const struct entry *e)
{
    l->way[e->way].in_flight--;
    l->counts.in_flight--;
}

static void wait_again(struct lnk_ledger *l, uint64_t frame)
{
    struct entry *e = at(l, frame);

    leave_way(l, e);
    e->state = WAITING;
    l->counts.waiting++;
    l->maybe_waiting = base_min(l->maybe_waiting, frame);
}

static void finish(struct lnk_ledger *l, struct entry *e, uint32_t status, void *answer)
{
    e->state = DONE;
    e->status = status;
    e->answer = answer;
    l->counts.held++;
}

uint32_t lnk_ledger_void(struct lnk_ledger *l, uint32_t epoch, uint32_t way)
{
    uint32_t count = 0;

    for (uint64_t f = l->first; f < l->end; f++) {
        struct entry *e = at(l, f);

        if (e->state == SENT && e->epoch <= epoch && (way == LNK_ALL_WAYS || e->way == way)) {
            wait_again(l, f);
            count++;
        }
    }
    for (uint32_t i = 0; i < l->way_count && epoch >= l->epoch; i++) {
        if (way == LNK_ALL_WAYS || way == i) {
            l->way[i].window = 0;
        }
    }
    return count;
}

uint32_t lnk_ledger_unanswered(const struct lnk_ledger *l, uint32_t epoch)
{
    uint32_t count = 0;

    for (uint64_t f = l->first; f < l->end; f++) {
        const struct entry *e = &l->entry[f % l->capacity];

        count += e->state == SENT && e->epoch <= epoch;
    }
    return count;
}

void lnk_ledger_window(struct lnk_ledger *l, uint32_t epoch, uint32_t way, uint32_t window)
{
    if (epoch == l->epoch && way < l->way_count) {
        l->way[way].window = window;
    }
}

uint32_t lnk_ledger_refuse(struct lnk_ledger *l, uint32_t status)
{
    uint32_t count = 0;

    for (uint64_t f = base_max(l->first, l->maybe_waiting); f < l->end; f++) {
        struct entry *e = at(l, f);

        if (e->state == WAITING) {
            l->counts.waiting--;
            finish(l, e, status, NULL);
            count++;
        }
    }
    return count;
}

int lnk_ledger_admit(struct lnk_ledger *l, void *input, uint64_t deadline_ns, uint64_t *ret_frame)
{
    if (l->end - l->first >= l->capacity) {
        return LNK_LEDGER_E_FULL;
    }
    *at(l, l->end) = (struct entry){.input = input, .deadline_ns = deadline_ns, .state = WAITING};
    l->counts.admitted++;
    l->counts.waiting++;
    *ret_frame = l->end++;
    return 0;
}

/* The way where one more frame is expected to be finished first, if @queued frames wait for each.
 * Return: LNK_WAYS_MAX: all are closed. */
static uint32_t choose_way(const struct lnk_ledger *l, const uint32_t queued[LNK_WAYS_MAX])
{
    uint32_t best = LNK_WAYS_MAX;
    double least = 0;

    for (uint32_t i = 0; i < l->way_count; i++) {
        double until = (l->way[i].in_flight + queued[i] + 1) * l->way[i].period;

        if (l->way[i].window > 0 && (best == LNK_WAYS_MAX || until < least)) {
            best = i;
            least = until;
        }
    }
    return best;
}

static bool has_room(const struct way *w)
{
    return w->in_flight < w->window;
}

static bool any_room(const struct lnk_ledger *l)
{
    for (uint32_t i = 0; i < l->way_count; i++) {
        if (has_room(&l->way[i])) {
            return true;
        }
    }
    return false;
}

/* Answers a waiting frame that nobody wants, or whose deadline is over. Return: it is so. */
static bool drop(struct lnk_ledger *l, struct entry *e, uint64_t now_ns, uint32_t expired)
{
    bool late = !e->cancelled && e->deadline_ns && e->deadline_ns <= now_ns;

    if (!e->cancelled && !late) {
        return false;
    }
    l->counts.waiting--;
    l->counts.cancelled += !late;
    l->counts.expired += late;
    finish(l, e, late ? expired : e->cancelled, NULL);
    return true;
}

int lnk_ledger_cancel(struct lnk_ledger *l, uint64_t frame, uint32_t status)
{
    struct entry *e = at(l, frame);

    if (frame < l->first || frame >= l->end || e->state == DONE) {
        return frame > 0 && frame < l->end ? LNK_LEDGER_E_DOUBLED : LNK_LEDGER_E_UNKNOWN;
    }
    e->cancelled = status;
    if (e->state == SENT) {
        return LNK_LEDGER_E_SENT;
    }
    drop(l, e, 0, 0);
    return 0;
}

static void dispatch(struct lnk_ledger *l, uint64_t frame, uint32_t way, uint64_t now_ns,
                     struct lnk_due *ret)
{
    struct entry *e = at(l, frame);

    l->way[way].in_flight++;
    l->counts.waiting--;
    l->counts.in_flight++;
    l->counts.sent++;
    l->counts.resent += e->times > 0;
    e->state = SENT;
    e->epoch = l->epoch;
    e->way = way;
    *ret = (struct lnk_due){
        .frame = frame,
        .epoch = l->epoch,
        .way = way,
        .times = ++e->times,
        .left_ns = e->deadline_ns ? e->deadline_ns - now_ns : 0,
        .input = e->input,
    };
}

int lnk_ledger_next(struct lnk_ledger *l, uint64_t now_ns, uint32_t expired, struct lnk_due *ret)
{
    uint32_t queued[LNK_WAYS_MAX] = {0}, waiting = l->counts.waiting;
    bool room = any_room(l);

    l->maybe_waiting = base_max(l->maybe_waiting, l->first);
    while (l->maybe_waiting < l->end && at(l, l->maybe_waiting)->state != WAITING) {
        l->maybe_waiting++;
    }
    for (uint64_t f = l->maybe_waiting; waiting > 0 && f < l->end; f++) {
        struct entry *e = at(l, f);
        uint32_t way;

        if (e->state != WAITING) {
            continue;
        }
        waiting--;
        if (drop(l, e, now_ns, expired) || !room) {
            continue;
        }
        way = choose_way(l, queued);
        if (has_room(&l->way[way])) {
            dispatch(l, f, way, now_ns, ret);
            return 0;
        }
        queued[way]++;
    }
    return LNK_LEDGER_E_NOTHING;
}

void lnk_ledger_unsend(struct lnk_ledger *l, const struct lnk_due *due)
{
    struct entry *e = at(l, due->frame);

    if (due->frame < l->first || due->frame >= l->end || e->state != SENT ||
        e->epoch != due->epoch || e->way != due->way) {
        return;
    }
    wait_again(l, due->frame);
    e->times--;
    l->counts.sent--;
    l->counts.resent -= e->times > 0;
}

int lnk_ledger_answer(struct lnk_ledger *l, uint64_t frame, uint32_t epoch, uint32_t way,
                      uint32_t status, void *answer)
{
    struct entry *e;

    if (frame > 0 && frame < l->first) {
        l->counts.doubled++;
        return LNK_LEDGER_E_DOUBLED;
    }
    e = frame < l->end ? at(l, frame) : NULL;
    if (!e || frame == 0 || epoch > l->epoch || (e->state == WAITING && e->times == 0)) {
        l->counts.unknown++;
        return LNK_LEDGER_E_UNKNOWN;
    }
    if (e->state == DONE) {
        l->counts.doubled++;
        return LNK_LEDGER_E_DOUBLED;
    }
    if (e->state != SENT || e->epoch != epoch || e->way != way) {
        l->counts.late++;
        return LNK_LEDGER_E_LATE;
    }
    leave_way(l, e);
    finish(l, e, status, answer);
    return 0;
}

int lnk_ledger_release(struct lnk_ledger *l, struct lnk_done *ret)
{
    struct entry *e = at(l, l->first);

    if (l->first == l->end || e->state != DONE) {
        return LNK_LEDGER_E_NOTHING;
    }
    *ret = (struct lnk_done){
        .frame = l->first++,
        .status = e->status,
        .input = e->input,
        .answer = e->answer,
    };
    l->counts.held--;
    l->counts.released++;
    return 0;
}

void lnk_ledger_counts(const struct lnk_ledger *l, struct lnk_ledger_counts *ret)
{
    *ret = l->counts;
}
