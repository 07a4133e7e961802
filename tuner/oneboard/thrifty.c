/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least energy within bounds on period and latency: two sums at once, so a state keeps labels
 * (energy, latency) of which none is worse in both. A label is dropped when even the least latency
 * behind it breaks the bound, or even the least energy behind it is no better than a plan known.
 */

#include "base/base.h"
#include "tuner/oneboard/solution.h"

#define LABELS_MAX 48u /* of a state; more are left out and the result says so */
#define PROBES 8       /* programs spent on a first plan to compare with */
#define STATES_MAX 512u
/* Segments times states; above it the first plan is the answer. */
#define LABEL_STATES_MAX ((size_t)1 << 20)

struct label {
    double nj, ns;
    uint16_t stages, row, last, from_label;
    uint16_t from_atom, batch;
    double slowest_ns;
};
struct labels {
    struct label *list; /* owned */
    size_t room;
    uint16_t count;
};

struct thrifty {
    const struct tun_space *s;
    double latency_ns, energy_max;
    bool cut, count_stages;
    struct tun_maker maker;
    double need;
    double *least_nj, *least_ns; /* [atom_count + 1][states], with so many cores left, owned */
    struct labels *labels;       /* [atom_count + 1][states], owned */
};

static void thrifty_free(struct thrifty *t)
{
    size_t states = (t->s->atom_count + 1) * t->s->state_count;

    for (size_t i = 0; t->labels && i < states; i++) {
        free(t->labels[i].list);
    }
    tun_maker_deinit(&t->maker);
    free(t->least_nj);
    free(t->least_ns);
    free(t->labels);
    free(t);
}

static struct thrifty *thrifty_new(const struct tun_space *s, double period_ns, double latency_ns)
{
    struct thrifty *t = calloc(1, sizeof(*t));
    size_t states = (s->atom_count + 1) * s->state_count;

    if (!t) {
        return NULL;
    }
    t->s = s;
    t->latency_ns = latency_ns;
    t->count_stages = base_min(s->atom_count, tun_core_count(s->p)) > s->stages_max;
    t->least_nj = malloc(states * sizeof(*t->least_nj));
    t->least_ns = malloc(states * sizeof(*t->least_ns));
    t->labels = calloc(states, sizeof(*t->labels));
    if (tun_maker_init(s, &t->maker) < 0 || !t->least_nj || !t->least_ns || !t->labels) {
        thrifty_free(t);
        return NULL;
    }
    t->need = tun_need(period_ns);
    t->maker.latency_ns = latency_ns;
    return t;
}

static void fill_least(struct thrifty *t)
{
    const struct tun_space *s = t->s;
    size_t n = s->atom_count, states = s->state_count, len = s->row_len;

    for (size_t i = 0; i < (n + 1) * states; i++) {
        t->least_nj[i] = t->least_ns[i] = i < n * states ? INFINITY : 0;
    }
    for (size_t from = n; from-- > 0;) {
        for (size_t to = from + 1; to <= n; to++) {
            size_t count = tun_make(s, &t->maker, from, to, t->need, TUN_FIGURE_BOTH);

            for (size_t i = 0; i < count; i++) {
                const struct tun_option *w = &t->maker.options[i];

                for (size_t row = 0; row + w->row < s->row_count; row++) {
                    size_t y = from * states + (row + w->row) * len + w->last;
                    size_t x = to * states + row * len;

                    if (!s->row_fits[w->row * s->row_count + row]) {
                        continue;
                    }
                    for (size_t l = 0; l + w->last < len; l++) {
                        t->least_nj[y + l] =
                            base_min(t->least_nj[y + l], t->least_nj[x + l] + w->figure);
                        t->least_ns[y + l] =
                            base_min(t->least_ns[y + l], t->least_ns[x + l] + w->ns);
                    }
                }
            }
        }
    }
}

static bool no_worse(const struct thrifty *t, const struct label *a, const struct label *b)
{
    return a->nj <= b->nj && a->ns <= b->ns && (!t->count_stages || a->stages <= b->stages);
}

/* Return: 0 or -ENOMEM. */
static int add_label(struct thrifty *t, struct labels *to, const struct label *new_label)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < to->count; i++) {
        if (no_worse(t, &to->list[i], new_label)) {
            return 0;
        }
    }
    for (uint16_t i = 0; i < to->count; i++) {
        if (!no_worse(t, new_label, &to->list[i])) {
            to->list[kept++] = to->list[i];
        }
    }
    to->count = kept;
    if (kept == LABELS_MAX) {
        t->cut = true;
        return 0;
    }
    if (!base_room(&to->list, sizeof(*to->list), kept, &to->room)) {
        return -ENOMEM;
    }
    to->list[to->count++] = *new_label;
    return 0;
}

/* Every label of one state, once around by one way. */
static int carry(struct thrifty *t, size_t from, size_t to, size_t state,
                 const struct tun_option *w)
{
    const struct tun_space *s = t->s;
    size_t states = s->state_count, after = state + w->row * s->row_len + w->last;
    const struct labels *source = &t->labels[from * states + state];
    size_t left = to * states + (states - 1 - after);

    if (source->count == 0 || !isfinite(t->least_ns[left])) {
        return 0;
    }
    for (uint16_t i = 0; i < source->count; i++) {
        struct label l = source->list[i];
        int r;

        l.nj += w->figure;
        l.ns += w->ns;
        l.stages++;
        if (l.ns + t->least_ns[left] > t->latency_ns || l.nj + t->least_nj[left] > t->energy_max ||
            (size_t)l.stages + (to < s->atom_count) > s->stages_max) {
            continue;
        }
        l.row = w->row;
        l.last = w->last;
        l.slowest_ns = w->slowest_ns;
        l.batch = w->batch;
        l.from_atom = (uint16_t)from;
        l.from_label = i;
        r = add_label(t, &t->labels[to * states + after], &l);
        if (r < 0) {
            return r;
        }
        if (to == s->atom_count) {
            t->energy_max = base_min(t->energy_max, l.nj);
        }
    }
    return 0;
}

static int run(struct thrifty *t)
{
    const struct tun_space *s = t->s;
    struct label first = {0};
    int r = add_label(t, &t->labels[0], &first);

    for (size_t from = 0; r == 0 && from < s->atom_count; from++) {
        for (size_t to = from + 1; r == 0 && to <= s->atom_count; to++) {
            size_t count = tun_make(s, &t->maker, from, to, t->need, TUN_FIGURE_BOTH);

            for (size_t i = 0; r == 0 && i < count; i++) {
                const struct tun_option *w = &t->maker.options[i];

                for (size_t row = 0; row + w->row < s->row_count; row++) {
                    if (!s->row_fits[w->row * s->row_count + row]) {
                        continue;
                    }
                    for (size_t l = 0; r == 0 && l + w->last < s->row_len; l++) {
                        r = carry(t, from, to, row * s->row_len + l, w);
                    }
                }
            }
        }
    }
    return r;
}

static bool trace(const struct thrifty *t, struct tun_path *ret)
{
    const struct tun_space *s = t->s;
    size_t states = s->state_count, atom = s->atom_count, state = 0;
    const struct label *best = NULL;

    for (size_t i = 0; i < states; i++) {
        const struct labels *l = &t->labels[atom * states + i];

        for (uint16_t k = 0; k < l->count; k++) {
            if (!best || l->list[k].nj < best->nj) {
                best = &l->list[k];
                state = i;
            }
        }
    }
    if (!best) {
        return false;
    }
    ret->figure = best->nj;
    ret->bottleneck_ns = 0;
    ret->count = 0;
    for (size_t i = best->stages; i > 0; i--) {
        struct tun_path_stage stage = {best->from_atom,
                                       atom,
                                       {.row = best->row,
                                        .last = best->last,
                                        .slowest_ns = best->slowest_ns,
                                        .batch = best->batch}};

        tun_path_prepend(s, &stage, ret);
        state -= best->row * s->row_len + best->last;
        atom = best->from_atom;
        best = &t->labels[atom * states + state].list[best->from_label];
    }
    return true;
}

static double energy_of(const struct tun_space *s, const struct tun_path *path, double latency_ns)
{
    struct pl_plan plan;
    struct tun_outcome o;

    if (tun_path_plan(s, path, &plan) != 0 || tun_eval(s->p, &plan, &o) != 0 ||
        o.latency_ns > latency_ns) {
        return INFINITY;
    }
    return o.energy_nj;
}

/* Plans of least energy for tighter periods: some have a lower latency too. *ret is replaced by
 * what has less energy within the bound. Return: 0 or -ENOMEM. */
static int probe(const struct tun_space *s, double period_ns, double latency_ns,
                 struct tun_path *ret, double *ret_nj)
{
    base_autofree struct tun_path *other = malloc(sizeof(*other));
    int r = other ? 0 : -ENOMEM;

    for (int i = 0; r == 0 && i < PROBES; i++) {
        period_ns *= 0.95;
        r = tun_second(s, period_ns, TUN_FIGURE_ENERGY, other);
        if (r == 0 && energy_of(s, other, latency_ns) < *ret_nj) {
            *ret_nj = energy_of(s, other, latency_ns);
            *ret = *other;
        }
    }
    return base_min(r, 0);
}

static int run_labels(const struct tun_space *s, double period_ns, double latency_ns,
                      double energy_nj, struct tun_path *ret, bool *ret_cut)
{
    struct thrifty *t = thrifty_new(s, period_ns, latency_ns);
    int r;

    if (!t) {
        return -ENOMEM;
    }
    t->energy_max = energy_nj * (1 + TUN_NEED_TOLERANCE);
    fill_least(t);
    r = run(t);
    if (r == 0) {
        trace(t, ret);
        *ret_cut = t->cut || t->maker.cut;
    }
    thrifty_free(t);
    return r;
}

int tun_thrifty(const struct tun_space *s, double period_ns, double latency_ns,
                struct tun_path *ret, bool *ret_cut)
{
    size_t segments = s->atom_count * (s->atom_count + 1) / 2;
    double energy_nj;
    int r = tun_second(s, period_ns, TUN_FIGURE_ENERGY, ret);

    if (r == 0 && isfinite(energy_of(s, ret, latency_ns))) {
        return 0;
    }
    r = r == 0 ? tun_second(s, period_ns, TUN_FIGURE_LATENCY, ret) : r;
    if (r == 0 && ret->figure > latency_ns) {
        r = TUN_E_IMPOSSIBLE;
    }
    if (r != 0) {
        return r;
    }
    energy_nj = energy_of(s, ret, latency_ns);
    r = probe(s, period_ns, latency_ns, ret, &energy_nj);
    if (r == 0 && (s->state_count > STATES_MAX || segments * s->state_count > LABEL_STATES_MAX)) {
        *ret_cut = true;
        return 0;
    }
    return r == 0 ? run_labels(s, period_ns, latency_ns, energy_nj, ret, ret_cut) : r;
}
