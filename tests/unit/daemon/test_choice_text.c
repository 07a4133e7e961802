/* SPDX-License-Identifier: Apache-2.0 */
/* Choices as text: a segment takes those of the whole model, and bad text is refused. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/models/choosing_private.h"
#include "model/segment/segment.h"
#include "tests/harness.h"

#define CLASS 0xc0ffeeull
#define TEXT_BYTES 3072u
#define CHANGES 2000

static char error[MDL_ERROR_MAX];

/* A depthwise and a 1x1 convolution that may run as one, and a sum that needs copies at borders. */
static struct mdl_model *load(void)
{
    static const char text[] =
        "{\"seed\": 5, \"input\": {\"shape\": [3, 14, 14]}, \"layers\": ["
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 3, \"pad\": 1, \"name\": \"a\"},"
        "{\"op\": \"dwconv\", \"kernel\": 3, \"pad\": 1},"
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 1, \"name\": \"b\"},"
        "{\"op\": \"concat\", \"in\": [\"a\", \"b\"], \"name\": \"both\"},"
        "{\"op\": \"conv\", \"out\": 32, \"kernel\": 3, \"pad\": 1, \"name\": \"c\"},"
        "{\"op\": \"add\", \"in\": [\"both\", \"c\"]},"
        "{\"op\": \"fc\", \"out\": 4}]}";
    struct mdl_model *m = NULL;
    FILE *f = fopen("chosen.json", "w");

    if (!f || fprintf(f, "%s", text) < 0 || fclose(f) != 0 ||
        mdl_load("chosen.json", NULL, error, &m) < 0) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
    unlink("chosen.json");
    return m;
}

/* The usable primitive of each op that the static order has last: no segment takes it by itself. */
static struct krn_net *last_ones(const struct mdl_model *m)
{
    struct krn_choice choice;
    struct krn_net *net = NULL;

    if (krn_choice_prefer(m, NULL, &choice) < 0) {
        abort();
    }
    for (size_t i = 0; i < m->op_count; i++) {
        const struct krn_primitive *v = NULL;

        while ((v = krn_primitive_next(m, i, false, NULL, v)) != NULL) {
            choice.own[i] = v;
        }
    }
    if (krn_net_new_chosen(m, &choice, 1, KRN_PACK_NOTHING, error, &net) < 0) {
        abort();
    }
    krn_choice_deinit(&choice);
    return net;
}

static struct dmn_kept_choice keep(const struct mdl_model *m)
{
    struct dmn_kept_choice k = {.count = 1, .kind[0] = {.name = "big", .class = CLASS}};

    k.kind[0].op_ns = calloc(m->op_count, sizeof(double));
    for (size_t i = 0; i < m->op_count; i++) {
        k.kind[0].op_ns[i] = (double)(1000 + i);
    }
    return k;
}

/* What a board takes for segment @s. Return: as dmn_choose_given(). */
static int take(struct dmn_choose *c, const struct mdl_model *s, char *text, uint64_t class)
{
    *c = (struct dmn_choose){.kind_count = 1, .given = text, .kinds[0].class = class};
    return dmn_choose_given(c, s);
}

static void end(struct dmn_choose *c)
{
    c->given = NULL; /* the caller's */
    dmn_choose_deinit(c);
}

static void same(const struct mdl_model *m, const struct krn_net *net, const struct mdl_model *s,
                 size_t first_op, const struct krn_chosen *of)
{
    size_t copies = mdl_segment_copies(s);

    for (size_t i = copies; i < s->op_count && first_op + i - copies < m->op_count; i++) {
        size_t op = first_op + i - copies;
        const struct krn_primitive *pair =
            i + 1 < s->op_count ? krn_net_chosen_fused(net, 0, op) : NULL;

        if (strcmp(s->ops[i].name, m->ops[op].name) != 0) {
            T_EQ((int)s->ops[i].kind, (int)MDL_OP_COPY); /* out of the segment */
            return;
        }
        T_STR(of->choice.own[i]->name, krn_net_chosen(net, 0, op)->name);
        T_TRUE(of->op_ns[i] == (double)(1000 + op));
        T_TRUE(of->choice.fused[i] == pair || !of->choice.fused[i]);
    }
}

TEST(a_segment_takes_what_the_whole_model_has)
{
    struct mdl_model *m = load();
    struct krn_net *net = last_ones(m);
    struct dmn_kept_choice k = keep(m);

    for (size_t first = 0; first < m->unit_count; first++) {
        for (size_t last = first; last < m->unit_count; last++) {
            size_t first_op = m->units[first].first_op, end_op = m->units[last].last_op + 1;
            struct mdl_model *s = NULL;
            struct dmn_choose c;
            char text[TEXT_BYTES];

            dmn_choice_text(&k, net, first_op, end_op, text, sizeof(text));
            T_EQ(mdl_segment(m, first, last, NULL, error, &s), 0);
            T_EQ(take(&c, s, text, CLASS), 0);
            same(m, net, s, first_op, &c.of[0]);
            end(&c);
            T_EQ(take(&c, s, text, CLASS + 1), DMN_CHOOSE_E_OTHER_CLASS); /* another CPU */
            T_TRUE(c.of[0].op_ns == NULL);
            end(&c);
            dmn_choice_text(&k, net, first_op, end_op, text, 20); /* no room */
            T_STR(text, "");
            mdl_free(s);
        }
    }
    dmn_kept_choice_deinit(&k);
    krn_net_free(net);
    mdl_free(m);
}

TEST(the_digest_tells_choices_apart)
{
    struct mdl_model *m = load();
    struct krn_net *last = last_ones(m), *preferred = NULL;
    struct dmn_kept_choice k = keep(m);

    T_EQ(krn_net_new_preferred(m, NULL, KRN_PACK_NOTHING, error, &preferred), 0);
    T_TRUE(dmn_choice_digest(&k, last) != dmn_choice_digest(&k, preferred));
    T_TRUE(dmn_choice_digest(&k, last) == dmn_choice_digest(&k, last));
    dmn_kept_choice_deinit(&k);
    krn_net_free(last);
    krn_net_free(preferred);
    mdl_free(m);
}

TEST(bad_text_is_refused)
{
    static const char *const bad[] = {"",
                                      ";",
                                      "0000000000c0ffee",
                                      "0000000000c0ffee ",
                                      "0000000000c0ffee  0",
                                      "0000000000c0ffee nonsense 0",
                                      "0000000000c0ffee conv__ref 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                                      "0000000000c0ffee conv__ref 1",
                                      "0000000000c0ffee conv__ref -1",
                                      "0000000000c0ffee conv__ref 0+",
                                      "0000000000c0ffee conv__ref 0:",
                                      "0000000000c0ffee conv__ref 99999999999999999999"};
    struct mdl_model *m = load(), *s = NULL;
    struct krn_net *net = last_ones(m);
    struct dmn_kept_choice k = keep(m);
    char good[TEXT_BYTES], text[TEXT_BYTES];
    struct dmn_choose c;

    T_EQ(mdl_segment(m, 1, 3, NULL, error, &s), 0);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        snprintf(text, sizeof(text), "%s", bad[i]);
        T_EQ(take(&c, s, text, CLASS), DMN_CHOOSE_E_OTHER_CLASS);
        end(&c);
    }
    dmn_choice_text(&k, net, m->units[1].first_op, m->units[3].last_op + 1, good, sizeof(good));
    for (int i = 0; i < CHANGES; i++) { /* whatever comes: primitives that can run, or none */
        memcpy(text, good, sizeof(text));
        text[t_range(0, (int64_t)strlen(good) - 1)] = (char)t_range(' ', '~');
        if (t_range(0, 3) == 0) {
            text[t_range(0, (int64_t)strlen(text))] = '\0';
        }
        if (take(&c, s, text, CLASS) == 0) {
            for (size_t op = 0; op < s->op_count; op++) {
                T_TRUE(krn_usable(c.of[0].choice.own[op], s, op));
            }
        }
        end(&c);
    }
    dmn_kept_choice_deinit(&k);
    krn_net_free(net);
    mdl_free(s);
    mdl_free(m);
}

TEST(measuring_again_takes_longer_than_a_start_may)
{
    struct dmn_choose c = {.ms = 100};

    T_EQ(dmn_choose_budget_ns(&c, 0), 100000000);
    c.again = true; /* all of it, without times from before */
    T_EQ(dmn_choose_budget_ns(&c, 0), 100000000);
    c.known[0].count = 1;
    T_EQ(dmn_choose_budget_ns(&c, 0), 400000000);
    T_EQ(dmn_choose_budget_ns(&c, 1), 100000000);
}

TEST(an_unsure_choice_is_measured_twice_within_a_minute)
{
    const uint64_t measuring_ns = 7 * BASE_NS_PER_S;

    T_LT(dmn_choose_patience_ns(0) + dmn_choose_patience_ns(1) + 2 * measuring_ns,
         60 * BASE_NS_PER_S);
    for (unsigned tries = 0; tries < 10; tries++) {
        T_EQ(dmn_choose_patience_ns(tries + 1), 2 * dmn_choose_patience_ns(tries));
    }
    T_EQ(dmn_choose_patience_ns(100), dmn_choose_patience_ns(10));
}

TEST_MAIN()
