/* SPDX-License-Identifier: Apache-2.0 */
/* The one way to another plan, on a real pipeline and without a daemon around it. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/switch.h"
#include "tests/harness.h"
#include "tests/unit/daemon/plan_text.h"
#include "tests/unit/pipeline/rig.h"

#define UNITS 4u

static bool drains; /* while it is set, the previous plan seems to drain */
int __real_pl_switch(struct pl_pipeline *p, const struct pl_plan *plan);
int __wrap_pl_switch(struct pl_pipeline *p, const struct pl_plan *plan);
int __wrap_pl_switch(struct pl_pipeline *p, const struct pl_plan *plan)
{
    return drains ? PL_E_BUSY : __real_pl_switch(p, plan);
}

struct fixture {
    struct dmn_config *config;
    struct dmn_machine machine;
    struct dmn_models models;
    struct dmn_plans plans;
    struct dmn_model m;
    struct rig rig;
    struct tiny_net net;
    struct dmn_plans_listener listener;
    unsigned changes, done;
    struct dmn_outcome why;
    char dir[32];
};

static void on_changed(void *ctx, struct dmn_model *m)
{
    struct fixture *f = ctx;

    f->changes += m == &f->m;
}

static void on_done(void *ctx, const struct dmn_outcome *o)
{
    struct fixture *f = ctx;

    f->done++;
    f->why = o ? *o : (struct dmn_outcome){0};
}

static void set_up(struct fixture *f)
{
    struct tun_ep ep = {.name = "big", .speed = 1, .bandwidth = 1};
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct pl_options o;
    struct pl_plan plan;

    memset(f, 0, sizeof(*f));
    tiny_net_init(&f->net, UNITS, 3, 10);
    rig_init(&f->rig, &f->net);
    rig_eps(&f->machine.eps, false);
    snprintf(f->dir, sizeof(f->dir), "/tmp/piped-switch-XXXXXX");
    T_TRUE(mkdtemp(f->dir) != NULL);
    T_EQ(dmn_config_load(NULL, false, error, &f->config), 0);
    T_EQ(dmn_history_init(&f->plans.history, 8), 0);
    f->models.machine = &f->machine;
    f->models.state_dir = f->dir;
    f->plans.models = &f->models;
    f->plans.machine = &f->machine;
    dmn_plans_init(&f->plans);
    f->machine.config = &f->config;
    f->machine.sysfs_root = f->dir;
    f->machine.topology = calloc(1, sizeof(*f->machine.topology));
    f->listener = (struct dmn_plans_listener){.ctx = f, .plan_changed = on_changed};
    dmn_plans_listen(&f->plans, &f->listener);
    plan = plan_of(&f->machine.eps, UNITS, "0-3@big");
    o = rig_options(&f->rig);
    T_EQ(pl_new(f->net.net, &f->machine.eps, &plan, &o, &f->rig.p), 0);
    snprintf(f->m.name, sizeof(f->m.name), "tiny");
    memset(f->net.model.hash, 'a', sizeof(f->net.model.hash) - 1);
    f->m.of = &f->models;
    f->m.model = &f->net.model;
    f->m.net = f->net.net;
    f->m.pipe = f->rig.p;
    f->m.origin = DMN_ORIGIN_EXACT;
    f->m.planning = calloc(1, sizeof(*f->m.planning));
    f->m.planning->of = &f->plans;
    ep.cores = f->machine.eps.eps[0].cpu_count;
    T_EQ(tun_problem_init(&f->m.planning->problem, UNITS, &ep, 1), 0);
}

static void take_down(struct fixture *f)
{
    char command[64];

    dmn_planner_deinit(&f->m);
    rig_deinit(&f->rig);
    tiny_net_deinit(&f->net);
    dmn_history_deinit(&f->plans.history);
    dmn_config_free(f->config);
    free(f->machine.topology);
    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    T_EQ(system(command), 0);
}

/* Is there a state file. */
static bool kept(const struct fixture *f)
{
    DIR *dir = opendir(f->dir);
    struct dirent *e;
    bool any = false;

    while (dir && (e = readdir(dir))) {
        any |= strncmp(e->d_name, "model-", 6) == 0;
    }
    closedir(dir);
    return any;
}

static const char *serving(const struct fixture *f)
{
    static char text[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(&f->m, text);
    return text;
}

static void drain(struct fixture *f)
{
    while (pl_switching(f->m.pipe)) {
        pl_reap(f->m.pipe);
        sched_yield();
    }
}

TEST(a_lasting_switch_is_told_and_remembered)
{
    const struct dmn_history_event *e;
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to,
                                                    .origin = {.from = DMN_FROM_USER},
                                                    .cause = DMN_CAUSE_REQUEST,
                                                    .detail = "a test",
                                                    .keep = true,
                                                    .learn = true}),
         0);
    T_STR(serving(&f), "0-1@big|2-3@big");
    T_EQ(f.m.origin.from, DMN_FROM_USER);
    T_EQ(f.changes, 1);
    e = dmn_history_get(&f.plans.history, 0);
    T_TRUE(e != NULL);
    T_EQ(e->cause, DMN_CAUSE_REQUEST);
    T_EQ(e->origin.from, DMN_FROM_USER);
    T_EQ(e->outcome, DMN_OUTCOME_SWITCHED);
    T_STR(e->model, "tiny");
    T_STR(e->detail, "a test");
    T_STR(e->plan_before, "0-3@big");
    T_STR(e->plan_after, "0-1@big|2-3@big");
    T_TRUE(kept(&f));
    take_down(&f);
}

TEST(what_was_kept_is_loaded_with_its_origin)
{
    struct dmn_origin origins[] = {{.from = DMN_FROM_USER}, DMN_ORIGIN_EXACT};
    enum dmn_from then[] = {DMN_FROM_USER, DMN_FROM_SAVED};

    for (size_t i = 0; i < base_array_count(origins); i++) {
        struct pl_plan to, loaded;
        struct dmn_planning of = {0};
        struct dmn_load l = {.planning = &of};
        struct fixture f;

        set_up(&f);
        to = plan_of(&f.machine.eps, UNITS, "0-0@big|1-3@big");
        T_EQ(dmn_plan_switch(&f.m,
                             &(struct dmn_switch){.plan = &to, .origin = origins[i], .keep = true}),
             0);
        snprintf(l.name, sizeof(l.name), "tiny");
        l.model = f.m.model;
        T_EQ(tun_problem_copy(&f.m.planning->problem, &of.problem), 0);
        dmn_kept_read(&f.plans, &l);
        T_EQ(dmn_kept_load(&f.machine, &l, &loaded), 0);
        T_TRUE(pl_plan_equal(&loaded, &to));
        T_EQ(l.origin.from, then[i]);
        T_EQ(dmn_kept_plan(&f.m, &loaded), then[i] == DMN_FROM_SAVED);
        json_decref(of.kept);
        json_decref(l.kept);
        tun_problem_deinit(&of.problem);
        take_down(&f);
    }
}

TEST(a_plan_of_the_configuration_is_not_kept_for_the_next_start)
{
    struct pl_plan to, loaded;
    struct dmn_planning of = {0};
    struct dmn_load l = {.planning = &of};
    struct fixture f;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-0@big|1-3@big");
    T_EQ(dmn_plan_switch(
             &f.m,
             &(struct dmn_switch){.plan = &to, .origin = {.from = DMN_FROM_CONFIG}, .keep = true}),
         0);
    snprintf(l.name, sizeof(l.name), "tiny");
    l.model = f.m.model;
    T_EQ(tun_problem_copy(&f.m.planning->problem, &of.problem), 0);
    dmn_kept_read(&f.plans, &l);
    T_EQ(dmn_kept_load(&f.machine, &l, &loaded), DMN_E_NO_PLAN);
    json_decref(of.kept);
    json_decref(l.kept);
    tun_problem_deinit(&of.problem);
    take_down(&f);
}

TEST(a_trial_is_told_and_not_remembered)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .kind = DMN_SWITCH_TRIAL}), 0);
    T_STR(serving(&f), "0-1@big|2-3@big");
    T_EQ(f.changes, 1);
    T_TRUE(f.m.origin.algorithm == &tun_exact);
    T_TRUE(dmn_history_get(&f.plans.history, 0) == NULL);
    T_TRUE(!kept(&f));
    take_down(&f);
}

TEST(a_switch_ahead_is_told_once_it_is_adopted)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .kind = DMN_SWITCH_AHEAD}), 0);
    T_EQ(f.changes, 0);
    T_TRUE(f.m.origin.algorithm == &tun_exact);
    T_TRUE(!kept(&f));
    dmn_plan_adopt(&f.m, &(struct dmn_switch){.origin = {.from = DMN_FROM_SAVED}, .keep = true});
    T_EQ(f.changes, 1);
    T_EQ(f.m.origin.from, DMN_FROM_SAVED);
    T_TRUE(dmn_history_get(&f.plans.history, 0) == NULL); /* whoever asked has an event */
    T_TRUE(kept(&f));
    take_down(&f);
}

static uint32_t disturbed_epoch;

static struct dmn_costs_hold held(const struct dmn_model *m)
{
    return (struct dmn_costs_hold){.keeping = true, .keeping_epoch = disturbed_epoch};
}

TEST(of_a_plan_made_under_interference_nothing_is_kept)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .origin = DMN_ORIGIN_EXACT}), 0);
    T_TRUE(!kept(&f)); /* nobody asked */
    disturbed_epoch = pl_epoch(f.m.pipe);
    f.m.planning->of->held = held;
    dmn_kept_save(&f.m);
    T_TRUE(!kept(&f));
    drain(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-3@big");
    T_EQ(dmn_plan_switch(
             &f.m, &(struct dmn_switch){.plan = &to, .origin = DMN_ORIGIN_EXACT, .keep = true}),
         0);
    T_TRUE(kept(&f)); /* that was said of the previous plan */
    take_down(&f);
}

TEST(who_waits_is_told_when_the_plan_before_has_drained)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    T_TRUE(!dmn_plan_changing(&f.m));
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .origin = DMN_ORIGIN_EXACT}), 0);
    dmn_plan_wait(&f.m, (struct dmn_done){on_done, &f});
    T_TRUE(dmn_plan_changing(&f.m));
    dmn_plans_settle(&f.m); /* nobody has reaped it yet */
    T_EQ(f.done, 0);
    drain(&f);
    dmn_plans_settle(&f.m);
    T_EQ(f.done, 1);
    T_TRUE(f.why.text == NULL);
    T_TRUE(!dmn_plan_changing(&f.m));
    dmn_plans_settle(&f.m);
    T_EQ(f.done, 1);
    take_down(&f);
}

TEST(no_switch_while_the_previous_plan_drains)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    drains = true;
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .kind = DMN_SWITCH_TRIAL}),
         -EBUSY);
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to, .origin = DMN_ORIGIN_EXACT}),
         -EBUSY);
    drains = false;
    T_STR(serving(&f), "0-3@big");
    T_EQ(f.changes, 0);
    take_down(&f);
}

TEST(a_plan_that_cannot_be_built_changes_nothing)
{
    struct fixture f;
    struct pl_plan to;

    set_up(&f);
    T_TRUE(rig_submit(&f.rig, 0));
    to = plan_of(&f.machine.eps, UNITS, "0-1@big|2-3@big");
    to.stages[1].last_unit = UNITS; /* one more than there are */
    T_EQ(dmn_plan_switch(&f.m, &(struct dmn_switch){.plan = &to,
                                                    .origin = {.from = DMN_FROM_USER},
                                                    .cause = DMN_CAUSE_REQUEST,
                                                    .keep = true}),
         -EINVAL);
    T_STR(serving(&f), "0-3@big");
    T_TRUE(f.m.origin.algorithm == &tun_exact);
    T_EQ(f.changes, 0);
    T_TRUE(dmn_history_get(&f.plans.history, 0) == NULL);
    T_TRUE(!kept(&f));
    T_TRUE(rig_drain(&f.rig)); /* it goes on */
    T_EQ(f.rig.ok, 1);
    take_down(&f);
}

TEST(who_waits_is_told_that_the_model_goes)
{
    struct fixture f;

    set_up(&f);
    dmn_plan_wait(&f.m, (struct dmn_done){on_done, &f});
    f.plans.hears.unloading(&f.plans, &f.m);
    T_EQ(f.done, 1);
    T_EQ(f.why.reason, DMN_REFUSED_NOT_FOUND);
    dmn_plan_wait(&f.m, (struct dmn_done){on_done, &f});
    take_down(&f); /* the daemon goes */
    T_EQ(f.done, 2);
    T_EQ(f.why.reason, DMN_REFUSED_BUSY);
}

TEST_MAIN()
