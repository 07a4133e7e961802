/* SPDX-License-Identifier: Apache-2.0 */
/* Plan texts: what is accepted covers every unit once, and is the same plan when it is written and
 * read again. The first byte is the number of units. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/plan.h"
#include "tests/fuzz/replay.h"

static const struct pl_ep_set eps = {
    .count = 3,
    .eps = {{.name = "big", .cpu_count = 4, .cpus = {4, 5, 6, 7}, .speed = 2},
            {.name = "little", .cpu_count = 4, .cpus = {0, 1, 2, 3}, .speed = 1},
            {.name = "x", .cpu_count = 1, .cpus = {8}, .speed = 1}}};

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const texts[] = {
        ("\x0c"
         "0-11@big*4"),
        ("\x0c"
         "0-3@big*2|4-11@little*4"),
        ("\x0c"
         "0-3@big*2x2|4-4@x|5-11@little+big"),
        ("\x01"
         "0-0@x"),
        ("\x08"
         "0-4@big*2|5-7@bigx2/4+little*2/8"),
        ("\xff"
         "0-100@littlex4|101-254@big*3+x"),
    };

    return fuzz_seed_text(texts, sizeof(texts) / sizeof(texts[0]), index, data, cap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t units = bytes ? data[0] : 0, next = 0;
    char error[160] = "", written[4096], *text = calloc(1, bytes + 1);
    struct pl_plan plan, again;

    MUST(text);
    memcpy(text, data + (bytes > 0), bytes - (bytes > 0));
    if (pl_plan_parse(text, &eps, units, error, sizeof(error), &plan) != 0) {
        MUST(error[0] != '\0' && strlen(error) < sizeof(error));
        free(text);
        return 0;
    }
    free(text);
    for (size_t i = 0; i < plan.stage_count; i++) {
        MUST(plan.stages[i].first_unit == next && plan.stages[i].last_unit >= next);
        next = plan.stages[i].last_unit + 1u;
        for (size_t g = 0; g < plan.stages[i].group_count; g++) {
            const struct pl_group *group = &plan.stages[i].groups[g];

            MUST(group->ep < eps.count && group->width >= 1 && group->count >= 1);
            MUST(pl_group_batch(group) <= PL_BATCH_MAX);
            MUST(group->width <= eps.eps[group->ep].cpu_count);
        }
    }
    MUST(next == units);
    MUST(pl_plan_format(&plan, &eps, written, sizeof(written)) == 0);
    MUST(pl_plan_parse(written, &eps, units, error, sizeof(error), &again) == 0);
    MUST(again.stage_count == plan.stage_count);
    for (size_t i = 0; i < plan.stage_count; i++) {
        const struct pl_stage_plan *a = &plan.stages[i], *b = &again.stages[i];

        MUST(a->first_unit == b->first_unit && a->last_unit == b->last_unit &&
             a->group_count == b->group_count &&
             memcmp(a->groups, b->groups, a->group_count * sizeof(a->groups[0])) == 0);
    }
    return 0;
}
