/* SPDX-License-Identifier: Apache-2.0 */
/* What the governor reports of the EPs, and what their units do when the clock changes. */

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"

#define RECENT 50u     /* windows for which a change explains what follows it */
#define LEARN_STEP 0.1 /* log ratio of two frequencies that teaches */
#define LEARN_WINDOWS 6u
#define LEARN_SHARE 0.5 /* of what one observation says */
#define LEARN_WAITED 0.05
#define LIMIT_STEP 0.01

static bool known(double x)
{
    return isfinite(x) && x > 0 && x <= 1e9;
}

static double median_of_readings(const double *r)
{
    double sorted[READINGS];
    size_t oldest = 0;

    while (oldest + 1 < READINGS && r[oldest] == 0) {
        oldest++;
    }
    if (oldest > 0) { /* not enough yet: the oldest known one holds */
        return r[oldest];
    }
    memcpy(sorted, r, sizeof(sorted));
    qsort(sorted, READINGS, sizeof(*sorted), base_by_size);
    return sorted[READINGS / 2];
}

/* The frequency that work on the EP would have. Idle cores are clocked down, which says nothing:
 * for an EP without work only a new governor or limit counts. */
static double reading(const struct tun_watched_ep *k, const struct tun_ep_seen *s, bool busy)
{
    double khz = known(s->khz) ? s->khz : known(s->limit_khz) ? s->limit_khz : 0;

    if (busy || k->governor_for > 0 || k->khz == 0) {
        return khz;
    }
    return k->limit_for > 0 && known(s->limit_khz) ? s->limit_khz : k->khz;
}

static void see_changes(struct tun_watched_ep *k, const struct tun_ep_seen *s)
{
    double limit = known(s->limit_khz) ? s->limit_khz : 0;

    k->governor_for -= k->governor_for > 0;
    k->limit_for -= k->limit_for > 0;
    k->thermal_for -= k->thermal_for > 0;
    if (s->governor && k->governor && s->governor != k->governor) {
        k->governor_for = RECENT;
    }
    if (limit > 0 && k->limit_khz > 0 && fabs(log(limit / k->limit_khz)) > LIMIT_STEP) {
        k->limit_for = RECENT;
    }
    if (s->thermal || (k->throttles && s->throttles > k->throttles)) {
        k->thermal_for = RECENT;
    }
    k->governor = s->governor ? s->governor : k->governor;
    k->limit_khz = limit > 0 ? limit : k->limit_khz;
    k->throttles = s->throttles ? s->throttles : k->throttles;
}

void tun_eps_start(struct tun_adapt *a, const struct tun_ep_seen *seen)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        const struct tun_ep_seen *s = &seen[k];
        struct tun_watched_ep *to = &a->eps[k];

        *to = (struct tun_watched_ep){
            .governor = s->governor, .throttles = s->throttles, .cores = s->cores};
        to->limit_khz = known(s->limit_khz) ? s->limit_khz : 0;
        to->khz = reading(to, s, true);
        to->readings[READINGS - 1] = to->khz;
        to->khz_table = to->khz_decided = to->khz_learned = to->khz;
        to->cores_decided = s->cores;
    }
}

static bool busy_in(const struct tun_adapt *a, const struct tun_seen_window *w, size_t ep)
{
    for (size_t i = 0; i < w->team_count; i++) {
        const struct tun_team_seen *t = &w->teams[i];

        if (t->stage < a->plan.stage_count && t->group < a->plan.stages[t->stage].group_count &&
            a->plan.stages[t->stage].groups[t->group].ep == ep && !t->starved && t->frames > 0) {
            return true;
        }
    }
    return false;
}

static void note_clock(struct tun_adapt *a, size_t ep)
{
    struct tun_watched_ep *k = &a->eps[ep];

    if (k->khz == 0) {
        return;
    }
    if (k->khz_table == 0) { /* known for the first time: what the table was made under */
        k->khz_table = k->khz_decided = k->khz_learned = k->khz;
    }
    if (fabs(log(k->khz_learned / k->khz)) > LEARN_STEP) {
        k->log_clock = log(k->khz_learned / k->khz);
        k->khz_learned = k->khz;
        k->learn_left = LEARN_WINDOWS;
        for (size_t i = 0; i < a->watch_count; i++) {
            if (a->watches[i].ep == ep) {
                a->watches[i].level_before = a->watches[i].detect.base;
            }
        }
    }
}

unsigned tun_eps_see(struct tun_adapt *a, const struct tun_seen_window *w)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        struct tun_watched_ep *to = &a->eps[k];
        double khz;

        see_changes(to, &w->eps[k]);
        to->cores = w->eps[k].cores;
        khz = reading(to, &w->eps[k], busy_in(a, w, k));
        if (khz > 0) {
            memmove(to->readings, to->readings + 1, sizeof(to->readings) - sizeof(khz));
            to->readings[READINGS - 1] = khz;
            to->khz = median_of_readings(to->readings);
            note_clock(a, k);
        }
    }
    return tun_eps_cores_moved(a) ? TUN_EVENT_HOTPLUG : 0;
}

bool tun_eps_cores_moved(const struct tun_adapt *a)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        if (a->eps[k].cores != a->eps[k].cores_decided) {
            return true;
        }
    }
    return false;
}

bool tun_eps_same_clock(const struct tun_adapt *a, const double *khz)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        if (tun_clock_moved(a->eps[k].khz, khz[k])) {
            return false;
        }
    }
    return true;
}

bool tun_eps_clock_moved(const struct tun_adapt *a)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        if (tun_clock_moved(a->eps[k].khz, a->eps[k].khz_decided)) {
            return true;
        }
    }
    return false;
}

double tun_eps_slow(const struct tun_adapt *a, size_t ep)
{
    double most = 1;

    for (size_t u = 0; u < a->problem.unit_count; u++) {
        most = base_max(most, a->slow[ep * a->problem.unit_count + u]);
    }
    return most;
}

void tun_eps_note_slowed(struct tun_adapt *a, bool felt)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        a->eps[k].slowed = tun_eps_slow(a, k) > SLOWED;
        a->eps[k].contended = a->eps[k].slowed && (a->eps[k].contended || felt);
    }
}

static void learn_from(struct tun_adapt *a, struct tun_watch *w, double log_clock)
{
    double level = tun_detect_level(&w->detect, LEARN_WINDOWS - 1);
    double off = level - w->level_before;

    if (w->detect.count < LEARN_WINDOWS || fabs(off) <= TUN_CLOCK_STEP ||
        tun_waiting(w) > LEARN_WAITED) {
        return;
    }
    for (size_t u = a->plan.stages[w->stage].first_unit; u <= a->plan.stages[w->stage].last_unit;
         u++) {
        double beta = a->beta[u] + LEARN_SHARE * off / log_clock;

        a->beta[u] = base_max(0.0, base_min(1.0, beta));
    }
    tun_detect_rebase(&w->detect, level);
    tun_watch_renew(a, w);
}

void tun_eps_learn(struct tun_adapt *a)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        struct tun_watched_ep *ep = &a->eps[k];

        if (ep->learn_left == 0 || --ep->learn_left > 0) {
            continue;
        }
        for (size_t i = 0; i < a->watch_count; i++) {
            if (a->watches[i].ep == k) {
                learn_from(a, &a->watches[i], ep->log_clock);
            }
        }
    }
}
