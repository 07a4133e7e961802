/* SPDX-License-Identifier: Apache-2.0 */
/* What the hierarchical DSE (Guo et al. 2022) and AutoDiCE claim, on four described Xavier NX. */
#include <math.h>

#include "base/base.h"
#include "bench/searches/check.h"
#include "tests/unit/tuner/papers.h"
#include "tuner/pipesim/dse.h"

#define SEEDS_MAX 10u
#define HOUR_NE 70.0  /* NE after so long is worse ... */
#define HOUR_SPE 20.0 /* ... than SPE after so long */
#define HOUR_STAGED 40.0

static void check_encodings(struct checks *c)
{
    static const uint16_t ne[8] = {0, 0, 1, 1, 2, 3, 3, 3}, spe[4] = {0, 2, 4, 5};
    double digits = paper_space_log10(TUN_ENCODING_NE, 344, 8);
    double space = tun_encoding_space(TUN_ENCODING_SPE, 344, 8);
    uint16_t a[8], b[8];

    tun_encoding_decode(TUN_ENCODING_NE, ne, 8, 4, a);
    tun_encoding_decode(TUN_ENCODING_SPE, spe, 8, 4, b);
    check_that(c, memcmp(a, b, sizeof(a)) == 0, "hierarchical DSE fig. 2",
               "[1,1,2,2,3,4,4,4] in NE and [0,2,4,5] in SPE are one mapping");
    check_that(c,
               fabs(digits - 344 * log10(8)) < 1e-9 && fabs(space / 122623572295575.0 - 1) < 1e-12,
               "hierarchical DSE's spaces", "8^344 = 10^%.1f for NE, C(351, 7) = %.4g for SPE",
               digits, space);
    check_that(
        c, tun_stages_of(8) == 3 && tun_stage_places(8, 1) == 2 && tun_stage_places(8, 2) == 4,
        "hierarchical DSE fig. 3", "%zu stages for 8 places, on %zu, %zu and %zu of them",
        tun_stages_of(8), tun_stage_places(8, 1), tun_stage_places(8, 2), tun_stage_places(8, 3));
}

/* A mapping to be found, and by how many seeds. */
struct seeded {
    struct psim_dse d;
    size_t seeds; /* at most SEEDS_MAX */
};

/* What was found by the seeds at an hour. */
struct found {
    struct psim_spread fps, memory, energy, volume;
};

static struct found found_at(const struct seeded *s, const struct psim_trace *t, double hour)
{
    return (struct found){.fps = psim_spread(&s->d, t, s->seeds, PSIM_FPS, hour),
                          .memory = psim_spread(&s->d, t, s->seeds, PSIM_MEMORY_MB, hour),
                          .energy = psim_spread(&s->d, t, s->seeds, PSIM_ENERGY_J, hour),
                          .volume = psim_spread(&s->d, t, s->seeds, PSIM_VOLUME, hour)};
}

static void check_encoding_claim(struct checks *c, const struct seeded *s,
                                 const struct psim_trace *ne, const struct psim_trace *spe)
{
    struct found a = found_at(s, ne, HOUR_NE), b = found_at(s, spe, HOUR_SPE);

    check_that(
        c,
        a.fps.most < b.fps.least && a.memory.least > b.memory.most &&
            a.energy.least > b.energy.most,
        "hierarchical DSE fig. 4, 1s-NE against 1s-SPE",
        "holds for every seed of %zu: after %.0f h NE has %.2f frames/s (%.2f to %.2f), %.0f MB "
        "(%.0f to %.0f), %.2f J (%.2f to %.2f); SPE after %.0f h %.1f (%.1f to %.1f), %.1f "
        "(%.1f to %.1f), %.3f (%.3f to %.3f)",
        s->seeds, HOUR_NE, a.fps.mean, a.fps.least, a.fps.most, a.memory.mean, a.memory.least,
        a.memory.most, a.energy.mean, a.energy.least, a.energy.most, HOUR_SPE, b.fps.mean,
        b.fps.least, b.fps.most, b.memory.mean, b.memory.least, b.memory.most, b.energy.mean,
        b.energy.least, b.energy.most);
}

/* How many of the seeds are better in all three objectives at an hour. */
static size_t wins(const struct seeded *s, const struct psim_trace *a, const struct psim_trace *b,
                   double hour)
{
    size_t at = psim_trace_at(&s->d, hour), count = 0;

    for (size_t i = 0; i < s->seeds; i++) {
        count += a[i].found[PSIM_FPS][at] > b[i].found[PSIM_FPS][at] &&
                 a[i].found[PSIM_MEMORY_MB][at] <= b[i].found[PSIM_MEMORY_MB][at] &&
                 a[i].found[PSIM_ENERGY_J][at] < b[i].found[PSIM_ENERGY_J][at];
    }
    return count;
}

/* The paper's claim: after 40 hours the means of all three objectives are better. How long its
 * stages are it does not say. */
static void check_stages(struct checks *c, const struct seeded *s, const char *name, double hour,
                         const struct psim_trace *staged, const struct psim_trace *spe)
{
    struct found a = found_at(s, staged, hour), b = found_at(s, spe, hour);

    check_that(
        c,
        a.fps.mean > b.fps.mean && a.memory.mean <= b.memory.mean && a.energy.mean < b.energy.mean,
        name,
        "better in the means of all three after %.0f h, and in each for %zu of %zu seeds: %.1f "
        "frames/s (%.1f to %.1f) against %.1f (%.1f to %.1f), %.1f MB against %.1f, %.3f J (%.3f "
        "to "
        "%.3f) against %.3f (%.3f to %.3f), hypervolume %.1f %% (%.1f to %.1f) against %.1f %% "
        "(%.1f "
        "to %.1f)",
        hour, wins(s, staged, spe, hour), s->seeds, a.fps.mean, a.fps.least, a.fps.most, b.fps.mean,
        b.fps.least, b.fps.most, a.memory.mean, b.memory.mean, a.energy.mean, a.energy.least,
        a.energy.most, b.energy.mean, b.energy.least, b.energy.most, 100 * a.volume.mean,
        100 * a.volume.least, 100 * a.volume.most, 100 * b.volume.mean, 100 * b.volume.least,
        100 * b.volume.most);
}

/* AutoDiCE: four devices against one. */
static void check_devices(struct checks *c, const struct psim_dse *d)
{
    const struct tun_problem *p = &d->truth;
    struct psim_mapped one = {INFINITY, INFINITY, INFINITY};
    double fps, memory_mb, energy_j;
    base_autofree uint16_t *places = calloc(p->unit_count, sizeof(*places));

    for (size_t cut = 0; places && cut <= p->unit_count; cut++) {
        struct psim_mapped m;

        for (size_t u = 0; u < p->unit_count; u++) {
            places[u] = u >= cut;
        }
        psim_mapping(p, places, &m);
        one.bottleneck_ns = fmin(one.bottleneck_ns, m.bottleneck_ns);
        one.most_memory_bytes = fmin(one.most_memory_bytes, m.most_memory_bytes);
        one.most_energy_nj = fmin(one.most_energy_nj, m.most_energy_nj);
    }
    fps = 1e9 / one.bottleneck_ns;
    memory_mb = one.most_memory_bytes / 1e6;
    energy_j = one.most_energy_nj / 1e9;
    check_that(
        c,
        d->best[PSIM_FPS] > fps && d->best[PSIM_MEMORY_MB] < memory_mb &&
            d->best[PSIM_ENERGY_J] < energy_j,
        "AutoDiCE, four boards against one",
        "%.1f against %.1f frames/s, %.0f against %.0f MB and %.2f against %.2f J a board; with "
        "whole copies, which the paper leaves out, %.1f frames/s",
        d->best[PSIM_FPS], fps, d->best[PSIM_MEMORY_MB], memory_mb, d->best[PSIM_ENERGY_J],
        energy_j, 1e9 / d->best_ns);
}

static int run_seeds(const struct seeded *s, enum psim_experiment e, uint64_t seed,
                     struct psim_trace *ret)
{
    int error = 0;

    for (size_t i = 0; i < s->seeds && !error; i++) {
        error = psim_dse_run(&s->d, e, seed + i, &ret[i]);
    }
    return error;
}

void check_boards(struct checks *c)
{
    struct psim_trace *t = calloc(4 * SEEDS_MAX, sizeof(*t));
    struct psim_trace *ne = t, *spe = t + SEEDS_MAX, *staged = t + 2 * SEEDS_MAX,
                      *equal = t + 3 * SEEDS_MAX;
    char error[PSIM_ERROR_MAX] = "";
    struct seeded s = {.seeds = check_share(c, SEEDS_MAX)};

    check_encodings(c);
    if (!t || psim_dse_init("resnet101", true, "xavier-nx-x4", error, &s.d) != 0) {
        check_that(c, false, "boards", "%s", error[0] ? error : "out of memory");
        free(t);
        return;
    }
    check_devices(c, &s.d);
    if (run_seeds(&s, PSIM_1S_NE, c->seed, ne) || run_seeds(&s, PSIM_1S_SPE, c->seed, spe) ||
        run_seeds(&s, PSIM_3S_2L_SPE, c->seed, staged)) {
        check_that(c, false, "boards", "out of memory");
    } else {
        struct found end = found_at(&s, spe, s.d.hours);

        check_encoding_claim(c, &s, ne, spe);
        check_stages(c, &s, "hierarchical DSE fig. 4, 3s-2l-SPE", HOUR_STAGED, staged, spe);
        s.d.early = 0;
        if (run_seeds(&s, PSIM_3S_2L_SPE, c->seed, equal) == 0) {
            check_stages(c, &s, "3s-2l-SPE of equal stages, once its last one is done", s.d.hours,
                         equal, spe);
        }
        check_that(c, 100 * end.volume.mean > 80 && 100 * end.volume.mean < 102,
                   "1s-SPE against the exact front",
                   "%.1f %% (%.1f to %.1f) of its hypervolume after %.0f h, %.1f frames/s of %.1f",
                   100 * end.volume.mean, 100 * end.volume.least, 100 * end.volume.most, s.d.hours,
                   end.fps.mean, 1e9 / s.d.front[0]);
    }
    for (size_t i = 0; i < 4 * SEEDS_MAX; i++) {
        psim_trace_deinit(&t[i]);
    }
    free(t);
    psim_dse_deinit(&s.d);
}
