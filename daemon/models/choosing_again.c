/* SPDX-License-Identifier: Apache-2.0 */
/* Measures choices again that are outdated or unsure, when it disturbs nobody. */
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/choosing_private.h"
#include "daemon/models/hot_swap.h"
#include "daemon/models/process_memory.h"
#include "daemon/service/log.h"

#define QUIET_NS BASE_NS_PER_S
#define PATIENCE_NS (60 * BASE_NS_PER_S) /* then it measures beside frames */
#define RETRY_NS (10 * BASE_NS_PER_S)
#define DOUBT_PATIENCE_NS (15 * BASE_NS_PER_S)
#define DOUBT_TRIES_MAX 10u
#define DOUBT_CALM_MAX 3u /* of them, which nothing disturbed: more would not help */
#define OTHERS_BUSY 0.2   /* of one core, all cores together: then the machine is not quiet */
#define SPARE_BYTES (64ull << 20) /* all primitives of a few operators, packed to be measured */

uint64_t dmn_choose_patience_ns(unsigned tries)
{
    return DOUBT_PATIENCE_NS << base_min(tries, DOUBT_TRIES_MAX);
}

static bool is_quiet(const struct dmn_models *models, uint64_t now_ns)
{
    for (const struct dmn_model *m = models->models; m; m = m->next) {
        if (m->running > 0 || now_ns - base_max(m->stats.last_ns, m->loaded_ns) < QUIET_NS) {
            return false;
        }
    }
    return true;
}

/* For a while there are two of the model, the new one with its weights as they are and packed. */
static bool has_room(const struct dmn_model *m)
{
    uint64_t needs = m->model->weight_bytes + krn_net_need_bytes(m->net) + m->model->arena_bytes;

    return needs + SPARE_BYTES <= dmn_memory_free();
}

static void stay(struct dmn_model *m, int level, const char *why)
{
    if (m->choice.outdated) {
        dmn_log_with(level, (struct dmn_log_fields){.model = m->name},
                     "model %s: its primitives, which were chosen for %s, stay: %s", m->name,
                     m->choice.outdated, why);
    } else {
        dmn_log_with(level, (struct dmn_log_fields){.model = m->name},
                     "model %s: its primitives, of which not all are sure, stay: %s", m->name, why);
    }
    m->choice.outdated = NULL;
}

static bool may_try(const struct dmn_model *m)
{
    return m->choice.doubt > 0 && m->choice.tries.all < DOUBT_TRIES_MAX &&
           m->choice.tries.calm < DOUBT_CALM_MAX &&
           dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_ADAPT_ENABLED);
}

/* What measuring again says of primitives that stay. */
static void tell(const struct dmn_model *m)
{
    const struct dmn_log_fields fields = {.model = m->name};

    if (m->choice.doubt <= 0) {
        dmn_log_with(LOG_NOTICE, fields, "model %s: measured again, its primitives are sure now",
                     m->name);
    } else {
        dmn_log_with(
            LOG_NOTICE, fields,
            "model %s: measured again, its primitives stay, and may lose %.1f %% to others%s",
            m->name, 100 * m->choice.doubt, may_try(m) ? "; it measures once more later" : "");
    }
}

/* The same primitives are best: keeps only their new times. */
static bool loaded(struct dmn_hot_swap *r)
{
    struct dmn_model *m = dmn_model_find(r->models, r->load->name);
    const struct dmn_choose *c = &r->load->choose;
    struct dmn_kept_choice now;

    if (!m || (!m->choice.outdated && m->choice.doubt <= 0) ||
        memcmp(&m->stamp, &r->load->stamp, sizeof(m->stamp)) != 0) { /* replaced meanwhile */
        return false;
    }
    if (!c->chosen) {
        m->choice.doubt = 0;
        stay(m, LOG_WARNING, c->note);
        return false;
    }
    dmn_choose_keep(c, true, &now);
    now.tried_ns = base_now_ns();
    if (dmn_choice_digest(&now, r->load->net) != dmn_choice_digest(&m->choice, m->net)) {
        dmn_kept_choice_deinit(&now);
        return true;
    }
    if (m->choice.outdated) {
        stay(m, LOG_NOTICE, "measured again, they are still the best");
    }
    dmn_kept_choice_deinit(&m->choice);
    m->choice = now;
    if (c->again) {
        tell(m);
    }
    return false;
}

static void serves(struct dmn_hot_swap *r)
{
    dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.model = r->load->name},
                 "model %s: measured again, it serves with other primitives than before",
                 r->load->name);
}

static void failed(struct dmn_hot_swap *r, const struct dmn_outcome *o)
{
    struct dmn_model *m = dmn_model_find(r->models, r->load->name);

    if (r->arrival.cancelled) {
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.model = r->load->name},
                     "model %s: measuring its primitives again was called off: %s", r->load->name,
                     o->text);
    } else if (m && (m->choice.outdated || m->choice.doubt > 0) && o->reason != DMN_REFUSED_BUSY) {
        m->choice.doubt = 0;
        stay(m, LOG_WARNING, o->text);
    }
    r->models->choose_again_ns = base_now_ns() + RETRY_NS;
}

/* Lets the load measure only what is unsure, and know what it has to beat. Without memory for that
 * it measures all. */
static void take_known(const struct dmn_model *m, struct dmn_choose *c)
{
    c->again = true;
    c->tries = m->choice.tries;
    for (size_t i = 0; i < m->choice.count; i++) {
        size_t kind = krn_net_kind(m->net, m->choice.kind[i].name), k = 0;

        while (k < c->kind_count && strcmp(c->kinds[k].name, m->choice.kind[i].name) != 0) {
            k++;
        }
        if (k == c->kind_count || krn_choice_init(&c->now[k], m->model->op_count) < 0) {
            continue;
        }
        for (size_t op = 0; op < m->model->op_count; op++) {
            c->now[k].own[op] = krn_net_chosen(m->net, kind, op);
            c->now[k].fused[op] = krn_net_chosen_fused(m->net, kind, op);
        }
        if (m->choice.kind[i].times.count > 0) {
            (void)krn_times_copy(&m->choice.kind[i].times, &c->known[k]);
        }
    }
}

static void begin(struct dmn_model *m)
{
    struct dmn_outcome why;
    struct dmn_hot_swap *r;

    if (!has_room(m)) {
        m->choice.doubt = 0;
        stay(m, LOG_NOTICE,
             "there is no memory to measure them again beside; pipectl optimise does it anyway");
        return;
    }
    r = dmn_hot_swap_new(m, m->choice.outdated ? DMN_CAUSE_UPGRADE : DMN_CAUSE_MEASURED, &why);
    if (!r) {
        return;
    }
    r->arrival.gives_way = true;
    r->load->choose.anew = true;
    if (m->choice.wanted.exact) { /* else examples judged, which are gone */
        r->load->choose.options = m->choice.wanted;
    }
    if (!m->choice.outdated) {
        take_known(m, &r->load->choose);
    }
    r->loaded = loaded;
    r->serves = serves;
    r->failed = failed;
    dmn_hot_swap_begin(r);
}

/* Did others, or anybody, take the cores since the last call? Frames are looked for before. */
static bool others_run(struct dmn_models *models, uint64_t now_ns)
{
    uint64_t at_ns = models->choose_seen_ns, busy_ns = models->choose_busy_ns;
    struct dmn_core_time t;

    if (dmn_core_time_read(-1, &t) < 0) {
        return false;
    }
    models->choose_seen_ns = now_ns;
    models->choose_busy_ns = t.busy_ns;
    return at_ns == 0 || now_ns - at_ns > 3 * BASE_NS_PER_S ||
           (double)(t.busy_ns - busy_ns) > OTHERS_BUSY * (double)(now_ns - at_ns);
}

static bool is_due(const struct dmn_model *m, bool quiet, bool others, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - base_max(m->loaded_ns, m->choice.tried_ns);

    if (m->choice.outdated) {
        return quiet || now_ns - m->loaded_ns > PATIENCE_NS;
    }
    return may_try(m) &&
           ((quiet && !others && (m->choice.tries.all == 0 || waited_ns > RETRY_NS)) ||
            waited_ns > dmn_choose_patience_ns(m->choice.tries.all));
}

void dmn_choose_again_tick(struct dmn_models *models, uint64_t now_ns)
{
    bool quiet, others, unsure = false;

    if (models->hot_swap || models->stopping || now_ns < models->choose_again_ns) {
        return;
    }
    quiet = is_quiet(models, now_ns);
    for (struct dmn_model *m = models->models; m; m = m->next) {
        unsure |= may_try(m);
    }
    others = unsure && others_run(models, now_ns);
    for (struct dmn_model *m = models->models; m; m = m->next) {
        if (is_due(m, quiet, others, now_ns)) {
            begin(m);
            return;
        }
    }
}
