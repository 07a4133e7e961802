/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/turns.h"

#include "base/base.h"

#define HOPE 1.28 /* standard errors: of normal means, one in ten is as far above */
#define SLOWER 0.05
#define JUMP 1.3
#define TRIMMED ((size_t)5) /* pairs from which on the farthest is left out */

int tun_turns_begin(struct tun_turns *t, const struct tun_turns_options *o, uint64_t now_ns)
{
    if (!(o->alpha > 0) || !(o->alpha <= o->alpha_worse) || !(o->alpha_worse < 1) ||
        !(o->gain >= 0) || !isfinite(o->gain) || !(o->floor > 0) || !isfinite(o->floor) ||
        !(o->c > 0) || !isfinite(o->c) || o->pairs_least < 2 || o->pairs_most < o->pairs_least ||
        o->pairs_most > TUN_TURNS_MAX || !(o->before_ns >= 0) || !isfinite(o->before_ns) ||
        !(o->challenger_ns >= 0) || !isfinite(o->challenger_ns)) {
        return -EINVAL;
    }
    *t = (struct tun_turns){.options = *o, .began_ns = now_ns, .now_ns = now_ns};
    if (o->before_ns > 0) {
        t->windows = 2;
        t->least_ns = o->before_ns;
    }
    return 0;
}

/* Return: it is the turn of the plan that has to prove something. */
static bool of_b(const struct tun_turns *t)
{
    return (t->count % 2 == 0) == (t->first_ns > 0);
}

bool tun_turns_challenger(const struct tun_turns *t)
{
    return of_b(t) != t->options.returns;
}

/* The pairs in order, without the one that is farthest from the median. Return: how many. */
static size_t trimmed(const struct tun_turns *t, double *ret)
{
    size_t n = t->count;
    double median;

    memcpy(ret, t->pairs, n * sizeof(*ret));
    qsort(ret, n, sizeof(*ret), base_by_size);
    if (n < TRIMMED) {
        return n;
    }
    median = (ret[(n - 1) / 2] + ret[n / 2]) / 2;
    if (median - ret[0] > ret[n - 1] - median) {
        memmove(ret, ret + 1, (n - 1) * sizeof(*ret));
    }
    return n - 1;
}

/* Half the width of the interval of @alpha. */
static double half(const struct tun_turns_options *o, double n, double spread, double alpha)
{
    double b = 1 - pow(alpha * alpha * o->c / (n + o->c), 1 / n);
    double room = n - (n + o->c) * b;

    return room > 0 ? sqrt((n + o->c) * b * spread / (n * room)) : INFINITY;
}

/* Return: how many pairs count. @ret_mean, @ret_spread: m and S of the header; 0 for no pair. */
static double pairs_of(const struct tun_turns *t, double *ret_mean, double *ret_spread)
{
    double x[TUN_TURNS_MAX], sum = 0, spread = 0;
    size_t n = trimmed(t, x);

    *ret_mean = *ret_spread = 0;
    if (n == 0) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
    }
    *ret_mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        spread += (x[i] - *ret_mean) * (x[i] - *ret_mean);
    }
    *ret_spread = spread + (double)(n - 1) * t->options.floor * t->options.floor;
    return (double)n;
}

static void interval(const struct tun_turns *t, double *ret_mean, double *ret_half)
{
    double spread, n = pairs_of(t, ret_mean, &spread);

    *ret_half = n < 2 ? INFINITY : half(&t->options, n, spread, t->options.alpha);
}

/* Return: B hardly gains what is asked for. */
static bool hopeless(const struct tun_turns *t)
{
    const struct tun_turns_options *o = &t->options;
    double mean, spread, n = pairs_of(t, &mean, &spread);

    return n >= 2 && (mean + half(o, n, spread, o->alpha_worse) < log1p(o->gain) ||
                      (t->count >= o->pairs_least &&
                       mean + HOPE * sqrt(spread / (n - 1) / n) < log1p(o->gain)));
}

/* B is much faster, by as much as a refusal needs. */
static bool likely(const struct tun_turns *t)
{
    double mean, spread, n = pairs_of(t, &mean, &spread);

    return n >= 2 && mean > log(JUMP) &&
           mean - half(&t->options, n, spread, t->options.alpha_worse) > 0;
}

/* What the last two pairs say where both say that B is slower. */
static enum tun_verdict newest(const struct tun_turns *t)
{
    double before = 0;

    if (t->count < 2 || t->pairs[t->count - 1] > -SLOWER || t->pairs[t->count - 2] > -SLOWER) {
        return TUN_TURNS_OPEN;
    }
    for (size_t i = 0; i + 2 < t->count; i++) {
        before += t->pairs[i];
    }
    return before > 0 ? TUN_TURNS_ENDED : TUN_TURNS_WORSE;
}

static enum tun_verdict judge(const struct tun_turns *t)
{
    const struct tun_turns_options *o = &t->options;
    double mean, h;

    interval(t, &mean, &h);
    if (mean - h > 0 && t->now_ns - t->began_ns >= o->time_least_ns) {
        return TUN_TURNS_BETTER;
    }
    if (newest(t) != TUN_TURNS_OPEN) {
        return newest(t);
    }
    if (hopeless(t)) {
        return TUN_TURNS_WORSE;
    }
    if (t->count < o->pairs_most &&
        (t->count < o->pairs_least || t->now_ns - t->began_ns < o->time_most_ns)) {
        return TUN_TURNS_OPEN;
    }
    return likely(t) ? TUN_TURNS_BETTER : TUN_TURNS_UNDECIDED;
}

/* Return: a window of A, of @ns a frame, shows that what made it slow is over. */
static bool over(const struct tun_turns *t, double ns)
{
    double other_ns = t->count > 0 ? t->sum_ns[1] / (double)t->count : t->options.challenger_ns;

    return !t->options.returns && t->windows >= 2 && /* one may have been disturbed */
           ns * JUMP < t->least_ns && !(ns > JUMP * other_ns && other_ns > 0);
}

/* A window of A or B. Return: the verdict about B. */
static enum tun_verdict add(struct tun_turns *t, double ns)
{
    bool b = of_b(t);

    if (!b) {
        if (over(t, ns)) {
            return TUN_TURNS_ENDED;
        }
        t->least_ns = t->windows++ > 0 ? base_min(t->least_ns, ns) : ns;
    }
    if (t->first_ns == 0) {
        t->first_ns = ns;
        return TUN_TURNS_OPEN;
    }
    t->sum_ns[0] += b ? t->first_ns : ns;
    t->sum_ns[1] += b ? ns : t->first_ns;
    t->pairs[t->count++] = b ? log(t->first_ns / ns) : log(ns / t->first_ns);
    t->first_ns = 0;
    return judge(t);
}

enum tun_verdict tun_turns_add(struct tun_turns *t, double ns, uint64_t now_ns)
{
    enum tun_verdict v;

    t->now_ns = base_max(t->now_ns, now_ns);
    if (t->verdict != TUN_TURNS_OPEN) {
        return t->verdict;
    }
    if (!(ns > 0) || !isfinite(ns)) {
        t->first_ns = 0;
        return TUN_TURNS_OPEN;
    }
    v = add(t, ns);
    if (t->options.returns && v != TUN_TURNS_OPEN) {
        v = v == TUN_TURNS_BETTER ? TUN_TURNS_WORSE : TUN_TURNS_BETTER;
    }
    t->verdict = v;
    return v;
}

void tun_turns_show(const struct tun_turns *t, struct tun_turns_shown *ret)
{
    double sign = t->options.returns ? -1 : 1, mean, h;

    interval(t, &mean, &h);
    *ret = (struct tun_turns_shown){.pairs = t->count,
                                    .ratio = exp(sign * mean),
                                    .low = exp(sign * mean - h),
                                    .high = exp(sign * mean + h)};
    if (t->count > 0) {
        ret->incumbent_ns = t->sum_ns[t->options.returns] / (double)t->count;
        ret->challenger_ns = t->sum_ns[!t->options.returns] / (double)t->count;
    }
}

const char *const tun_verdict_names[] = {"open", "better", "worse", "ended", "undecided"};

/* ---- what has lost ---- */

double tun_cost_level(const struct tun_problem *p, size_t ep)
{
    double sum = 0;
    size_t count = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        double ns = tun_cell_at(&p->costs, ep, 1, u)->ns;

        sum += ns > 0 ? log(ns) : 0;
        count += ns > 0;
    }
    return count > 0 ? sum / (double)count : 0;
}

static void see(const struct tun_problem *now, struct tun_lost_pair *ret)
{
    ret->ep_count = now->ep_count;
    for (size_t k = 0; k < now->ep_count; k++) {
        ret->cores[k] = now->eps[k].cores;
        ret->level[k] = tun_cost_level(now, k);
    }
}

static bool alike(const struct tun_lost_pair *a, const struct tun_lost_pair *b)
{
    bool same = a->ep_count == b->ep_count;

    for (size_t k = 0; same && k < a->ep_count; k++) {
        same = a->cores[k] == b->cores[k] && fabs(a->level[k] - b->level[k]) < TUN_LOST_CLEAR;
    }
    return same;
}

/* Return: its index; l->count: none. */
static size_t find(const struct tun_lost *l, const struct tun_lost_pair *now,
                   const struct pl_plan *kept, const struct pl_plan *lost)
{
    size_t i = 0;

    while (i < l->count && !(alike(&l->pairs[i], now) && pl_plan_equal(&l->pairs[i].kept, kept) &&
                             pl_plan_equal(&l->pairs[i].lost, lost))) {
        i++;
    }
    return i;
}

void tun_lost_add(struct tun_lost *l, const struct tun_problem *now, const struct pl_plan *kept,
                  const struct pl_plan *lost)
{
    struct tun_lost_pair pair = {0};

    see(now, &pair);
    if (find(l, &pair, kept, lost) < l->count) {
        return;
    }
    pair.kept = *kept;
    pair.lost = *lost;
    l->pairs[l->at] = pair;
    l->at = (l->at + 1) % TUN_LOST_MAX;
    l->count = base_min(l->count + 1, (size_t)TUN_LOST_MAX);
}

bool tun_lost_has(const struct tun_lost *l, const struct tun_problem *now,
                  const struct pl_plan *incumbent, const struct pl_plan *challenger)
{
    struct tun_lost_pair pair = {0};

    see(now, &pair);
    return find(l, &pair, incumbent, challenger) < l->count;
}
