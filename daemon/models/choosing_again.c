/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/choosing_again.h"

#include <string.h>

#include "base.h"
#include "daemon/models/hot_swap.h"
#include "daemon/models/memory_room.h"
#include "daemon/models/models.h"
#include "daemon/service/log.h"

#define QUIET_NS BASE_NS_PER_S
#define PATIENCE_NS (60 * BASE_NS_PER_S) /* then it measures beside frames */
#define RETRY_NS (10 * BASE_NS_PER_S)
#define SPARE_BYTES (64ull << 20) /* all primitives of a few operators, packed to be measured */

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
    uint64_t taken = dmn_process_memory().resident_bytes, room = dmn_memory_room("", taken);
    uint64_t needs = m->model->weight_bytes + krn_net_need_bytes(m->net) + m->model->arena_bytes;

    return room == 0 || taken + needs + SPARE_BYTES <= room;
}

static void stay(struct dmn_model *m, int level, const char *why)
{
    dmn_log_with(level, (struct dmn_log_fields){.model = m->name},
                 "model %s: its primitives, which were chosen for %s, stay: %s", m->name,
                 m->choice.outdated, why);
    m->choice.outdated = NULL;
}

/* The same primitives are best: keeps only their new times. */
static bool loaded(struct dmn_hot_swap *r)
{
    struct dmn_model *m = dmn_model_find(r->models, r->load->name);
    const struct dmn_choose *c = &r->load->choose;
    struct dmn_kept_choice now;

    if (!m || !m->choice.outdated ||
        memcmp(&m->stamp, &r->load->stamp, sizeof(m->stamp)) != 0) { /* replaced meanwhile */
        return false;
    }
    if (!c->chosen) {
        stay(m, LOG_WARNING, c->note);
        return false;
    }
    dmn_choose_keep(c, true, &now);
    if (dmn_choice_digest(&now, r->load->net) != dmn_choice_digest(&m->choice, m->net)) {
        dmn_kept_choice_deinit(&now);
        return true;
    }
    stay(m, LOG_NOTICE, "measured again, they are still the best");
    dmn_kept_choice_deinit(&m->choice);
    m->choice = now;
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

    if (m && m->choice.outdated && o->reason != DMN_REFUSED_BUSY) {
        stay(m, LOG_WARNING, o->text);
    }
    r->models->choose_again_ns = base_now_ns() + RETRY_NS;
}

static void begin(struct dmn_model *m)
{
    struct dmn_outcome why;
    struct dmn_hot_swap *r;

    if (!has_room(m)) {
        stay(m, LOG_NOTICE,
             "there is no memory to measure them again beside; pipectl optimise does it anyway");
        return;
    }
    r = dmn_hot_swap_new(m, DMN_CAUSE_UPGRADE, &why);
    if (!r) {
        return;
    }
    r->load->choose.anew = true;
    r->loaded = loaded;
    r->serves = serves;
    r->failed = failed;
    if (dmn_hot_swap_begin(r) < 0) {
        dmn_hot_swap_free(r);
    }
}

void dmn_choose_again_tick(struct dmn_models *models, uint64_t now_ns)
{
    bool quiet;

    if (models->hot_swap || models->stopping || now_ns < models->choose_again_ns) {
        return;
    }
    quiet = is_quiet(models, now_ns);
    for (struct dmn_model *m = models->models; m; m = m->next) {
        if (m->choice.outdated && (quiet || now_ns - m->loaded_ns > PATIENCE_NS)) {
            begin(m);
            return;
        }
    }
}
