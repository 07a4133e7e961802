/* SPDX-License-Identifier: Apache-2.0 */
/* What the papers of Shisha and Pipe-search show of their searches: figures 4 to 9 of the one,
 * figures 3 and 4 and tables 3, 5 and 6 of the other. */
#include <math.h>

#include "base/base.h"
#include "bench/searches/check.h"

#define EQUAL 1.01     /* within a hundredth counts as equal */
#define SEEDS_MAX 100u /* random ones, figure 6 */

/* Shisha as printed, H3, as the paper recommends; the machines say N. */
static struct tun_options printed(const struct checks *c)
{
    return (struct tun_options){.seed = c->seed, .heuristic = TUN_HEURISTIC};
}

static const char *const NETWORKS[] = {"resnet50", "yolov3", "synthnet"};
#define COUNT base_array_count(NETWORKS)

/* A described machine and one search on it. */
struct subject {
    struct psim_case on;
    struct psim_run run;
};

static bool subject(struct subject *s, const char *network, enum psim_counted counted,
                    const char *platform)
{
    char error[PSIM_ERROR_MAX];

    *s = (struct subject){.on = PSIM_CASE_NULL};
    if (psim_case_init(network, counted, platform, error, &s->on)) {
        fprintf(stderr, "search_check: %s\n", error);
        return false;
    }
    return true;
}

/* Runs another search. Return: its bottleneck, ns; NAN: it did not run. */
static double run(struct subject *s, const char *algorithm, const struct tun_options *o)
{
    struct psim_machine machine = psim_machine(&s->on.truth, o->seed);
    char error[PSIM_ERROR_MAX];

    psim_run_deinit(&s->run);
    if (psim_run(algorithm, &s->on.truth, o, &machine, error, &s->run)) {
        fprintf(stderr, "search_check: %s\n", error);
        return NAN;
    }
    return s->run.bottleneck_ns;
}

static void subject_deinit(struct subject *s)
{
    psim_run_deinit(&s->run);
    psim_case_deinit(&s->on);
}

/* ---- Shisha ---- */

/* Section 6.1 and 6.2: what it ends with equals the best of an exhaustive search. */
static void check_optimality(struct checks *c)
{
    char text[256] = "";
    double worst = 0;

    for (size_t n = 0; n < COUNT; n++) {
        struct tun_options options = printed(c), ours = {.seed = c->seed};
        struct subject s;

        if (subject(&s, NETWORKS[n], PSIM_UNITS, "shisha-c2")) {
            double least = psim_best(&s.on.truth, TUN_SPACE_PLACES, NULL);
            double off = run(&s, "shisha", &options) / least;

            worst = base_max(worst, off);
            base_append(text, sizeof(text), "%s%s %.3f, %.3f", n ? "; " : "", NETWORKS[n], off,
                        run(&s, "shisha", &ours) / least);
            subject_deinit(&s);
        }
    }
    check_claim(c, worst > 0 && worst <= EQUAL, CHECK_TOLD,
                "Shisha equals exhaustive search (fig. 5)",
                "bottleneck over the least of its space on four places, by H3 and with mirror "
                "images: %s (the paper: 1)",
                text);
}

static void check_convergence(struct checks *c)
{
    struct tun_options options = printed(c);
    struct subject s;
    double off;

    if (subject(&s, "synthnet", PSIM_UNITS, "shisha-c5")) {
        off = run(&s, "shisha", &options) / psim_best(&s.on.truth, TUN_SPACE_PLACES, NULL);
        check_claim(
            c, off <= EQUAL, CHECK_TOLD, "Shisha equals exhaustive search (fig. 4)",
            "SynthNet on eight places: its bottleneck is %.3f times the least of its space after "
            "%zu of %.3g plans",
            off, s.run.count, s.run.space);
        subject_deinit(&s);
    }
}

/* Figure 6. @better, @slower: the paper's shares of throughput gained and of time lost. */
static void check_seeds(struct checks *c, const char *network, enum check_known known,
                        double better, double slower)
{
    struct tun_options options = printed(c);
    double own, own_s, mean = 0, mean_s = 0;
    size_t worse = 0, later = 0, seeds = check_share(c, SEEDS_MAX);
    struct subject s;

    if (!subject(&s, network, PSIM_UNITS, "shisha-c2")) {
        return;
    }
    own = run(&s, "shisha", &options);
    own_s = s.run.tuning_s;
    options.drawn_seed = true;
    for (size_t i = 0; i < seeds; i++) {
        double ns;

        options.seed = c->seed + 1 + i;
        ns = run(&s, "shisha", &options);
        mean += ns / (double)seeds;
        mean_s += s.run.tuning_s / (double)seeds;
        worse += ns > own * (1 + 1e-9);
        later += s.run.tuning_s > own_s;
    }
    check_claim(
        c, mean / own >= 1 + better - 0.05 && mean_s / own_s >= 1 + slower - 0.05, known, network,
        "fig. 6, %zu random seeds in Shisha's place: %.0f %% more time in the slowest stage on "
        "average, %zu end worse, %.2f times its tuning time, %zu later (the paper: %.0f %%, %.2f)",
        seeds, 100 * (mean / own - 1), worse, mean_s / own_s, later, 100 * better, 1 + slower);
    subject_deinit(&s);
}

/* Figures 7 and 8: heuristics on the machines of table 2. */
static void check_heuristics(struct checks *c)
{
    size_t best = 0, sooner = 0, cases = 0;

    for (size_t n = 0; n < COUNT; n++) {
        for (unsigned machine = 1; machine <= 6; machine++) {
            double ns[7], seconds[7], least = INFINITY;
            char name[16];
            struct subject s;

            snprintf(name, sizeof(name), "shisha-c%u", machine);
            if (!subject(&s, NETWORKS[n], PSIM_UNITS, name)) {
                continue;
            }
            for (unsigned h = 1; h <= 6; h++) {
                struct tun_options options = {.seed = c->seed, .heuristic = h};

                ns[h] = run(&s, "shisha", &options);
                seconds[h] = s.run.tuning_s;
                least = base_min(least, ns[h]);
            }
            cases++;
            best += base_min(ns[1], ns[3]) <= least * EQUAL;
            sooner += seconds[3] <= seconds[1];
            subject_deinit(&s);
        }
    }
    check_claim(c, (double)best >= 0.8 * (double)cases, CHECK_HOLDS, "Shisha's H1 and H3 (fig. 7)",
                "one of them is best or within 1 %% of it in %zu of %zu cases (the paper: 80 %%)",
                best, cases);
    check_claim(c, (double)sooner >= 0.9 * (double)cases, CHECK_TOLD,
                "Shisha's H3 against H1 (fig. 8)",
                "not later in %zu of %zu cases (the paper: 90 %%)", sooner, cases);
}

/* Figure 9: what alpha gains, where slow places are 3, 6 and 12 times slower. */
static void check_alpha(struct checks *c)
{
    static const char *const MACHINES[] = {"shisha-c5", "shisha-c5-6x", "shisha-c5-12x"};
    double gain[base_array_count(MACHINES)] = {0};

    for (size_t m = 0; m < base_array_count(MACHINES); m++) {
        struct tun_options ten = printed(c), most = ten;
        struct subject s;

        if (subject(&s, "yolov3", PSIM_UNITS, MACHINES[m])) {
            double with_ten = run(&s, "shisha", &ten);

            most.alpha = 100;

            gain[m] = with_ten / run(&s, "shisha", &most) - 1;
            subject_deinit(&s);
        }
    }
    check_claim(
        c, gain[2] > gain[0] && gain[2] > 0.01, CHECK_TOLD, "Shisha's alpha (fig. 9)",
        "YOLOv3, alpha 100 against 10: %.1f, %.1f and %.1f %% more throughput where slow places "
        "are 3, 6 and 12 times slower (the paper: the more the slower they are)",
        100 * gain[0], 100 * gain[1], 100 * gain[2]);
}

/* ---- Pipe-search ---- */

/* Table 3, table 6 and figure 3: which cut is the best of all and where the search ends. */
static void check_best_cut(struct checks *c, const char *network, const char *platform,
                           unsigned alpha, const char *printed, const char *where)
{
    struct tun_options options = {.seed = c->seed, .alpha = alpha};
    char best[PSIM_CUT_TEXT], found[PSIM_CUT_TEXT] = "", name[64];
    struct pl_plan plan;
    struct subject s;
    double off;

    if (subject(&s, network, PSIM_LAYERS, platform)) {
        off = run(&s, "pipe-search", &options) / psim_best(&s.on.truth, TUN_SPACE_CUTS, &plan);
        psim_cut_text(&plan, best);
        if (s.run.count) {
            psim_cut_text(&s.run.log[s.run.result].plan, found);
        }
        snprintf(name, sizeof(name), "Pipe-search, %s", where);
        check_claim(
            c, strcmp(found, printed) == 0, CHECK_TOLD, name,
            "%s on %s: it ends with %s, %.3f times the best of all cuts, %s (the paper: %s)",
            network, platform, found, off, best, printed);
        subject_deinit(&s);
    }
}

/* Table 5: what the hints gain. */
static void check_hints(struct checks *c)
{
    struct tun_options with = {.seed = c->seed}, without = {.seed = c->seed, .no_hints = true};
    struct tun_options random = {
        .seed = c->seed, .space = TUN_SPACE_CUTS, .trials_max = SIZE_MAX, .enough_ns = 1e9 / 0.9};
    double a, b, a_s, b_s, c_s;
    struct subject s;

    if (subject(&s, "vgg16", PSIM_LAYERS, "tx2-1")) {
        a = 1e9 / run(&s, "pipe-search", &with);
        a_s = s.run.tuning_s;
        b = 1e9 / run(&s, "pipe-search", &without);
        b_s = s.run.tuning_s;
        run(&s, "random", &random);
        c_s = s.run.tuning_s;
        check_claim(
            c, a >= 1.5 * b, CHECK_TOLD, "Pipe-search's hints (table 5)",
            "%.2f frames/s with and %.2f without (the paper: 1.2 and 0.6); in %.0f and %.0f s, a "
            "random walk to 0.9 takes %.0f (the paper: 0.1, 0.1 and 1.1)",
            a, b, a_s, b_s, c_s);
        subject_deinit(&s);
    }
}

/* Figure 4: times balanced by the search, where the seed balances weights. */
static void check_balance(struct checks *c)
{
    static const char *const ON[] = {"resnet50", "alexnet", "vgg16"};
    char text[256] = "";
    size_t better = 0, two = 0;

    for (size_t n = 0; n < base_array_count(ON); n++) {
        struct tun_options options = {.seed = c->seed, .alpha = 15};
        struct subject s;

        if (subject(&s, ON[n], PSIM_LAYERS, "tx2-3")) {
            const struct tun_outcome *seed, *end;
            double a, b;

            run(&s, "pipe-search", &options);
            two += s.run.log[s.run.result].plan.stage_count == 2;
            s.on.truth.bounds.stages_max = 2;
            run(&s, "pipe-search", &options);
            seed = &s.run.log[0].measured;
            end = &s.run.log[s.run.result].measured;
            a = 100 * seed->bottleneck_ns / (seed->stage_ns[0] + seed->stage_ns[1]);
            b = 100 * end->bottleneck_ns / (end->stage_ns[0] + end->stage_ns[1]);
            better += b < a;
            base_append(text, sizeof(text), "%s%s %.0f to %.0f %%", n ? ", " : "", ON[n], a, b);
            subject_deinit(&s);
        }
    }
    check_claim(c, better == base_array_count(ON), CHECK_HOLDS,
                "Pipe-search balances times (fig. 4)",
                "share of the slower of two stages, seed and end, governor setting 3: %s", text);
    check_claim(c, two == base_array_count(ON), CHECK_TOLD,
                "Pipe-search chooses two stages (sect. 6.4)",
                "for %zu of %zu networks under governor setting 3", two, base_array_count(ON));
}

void check_papers(struct checks *c)
{
    check_optimality(c);
    check_convergence(c);
    check_seeds(c, "yolov3", CHECK_TOLD, 0.16, 0);
    check_seeds(c, "resnet50", CHECK_TOLD, 0, 0.35);
    check_heuristics(c);
    check_alpha(c);
    check_best_cut(c, "vgg16", "tx2-1", 10, "[7,4,10]", "table 3");
    check_best_cut(c, "vgg16", "tx2-1", 10, "[6,5,10]", "table 6, setting 1");
    check_best_cut(c, "vgg16", "tx2-2", 10, "[5,16]", "table 6, setting 2");
    check_best_cut(c, "vgg16", "tx2-3", 10, "[9,12]", "table 6, setting 3");
    check_best_cut(c, "vgg16", "tx2-4", 10, "[7,4,10]", "table 6, setting 4");
    check_best_cut(c, "synth2", "tx2-3", 15, "[8,6,1]", "figure 3");
    check_hints(c);
    check_balance(c);
}
