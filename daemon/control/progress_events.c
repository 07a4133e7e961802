/* SPDX-License-Identifier: Apache-2.0 */
/* Tells subscribers how far work that takes long is. They lose nothing by missing one, so a step
 * that is over between two ticks is not told. Trials of a retune are events of their own. */
#include "daemon/control/control.h"
#include "daemon/models/arrival.h"
#include "daemon/plans/profile.h"

struct told {
    uint64_t digest;
    json_t *events; /* owned */
};

/* @model: "": of no model */
static void add(struct told *t, const char *model, const char *doing, size_t done, size_t of)
{
    t->digest = t->digest * 31 + (uintptr_t)doing;
    t->digest = t->digest * 31 + done;
    json_array_append_new(t->events, json_pack("{s:s, s:s, s:s, s:I, s:I}", "event", "progress",
                                               "model", model, "doing", doing, "done",
                                               (json_int_t)done, "of", (json_int_t)of));
}

void dmn_control_progress(struct dmn_control *control)
{
    struct told t = {0};
    const struct dmn_arrival *a;
    json_t *event;
    size_t i;

    if (LIST_EMPTY(&control->subscribers)) {
        return;
    }
    t.events = json_array();
    LIST_FOREACH(a, &control->models->arrivals, linked) {
        for (i = 0; i < a->count; i++) {
            const struct mdl_progress *p = &a->loads[i]->progress;
            const char *doing = atomic_load_explicit(&p->what, memory_order_relaxed);

            if (doing) {
                add(&t, a->loads[i]->name, doing,
                    atomic_load_explicit(&p->done, memory_order_relaxed),
                    atomic_load_explicit(&p->of, memory_order_relaxed));
            }
        }
    }
    if (dmn_profiling(control->plans)) {
        size_t of, done = dmn_profile_progress(control->plans, &of);

        add(&t, "", "measuring widths of teams", done, of);
    }
    if (t.digest != control->told) {
        json_array_foreach(t.events, i, event)
        {
            dmn_control_event(control, json_incref(event));
        }
    }
    control->told = t.digest;
    json_decref(t.events);
}
