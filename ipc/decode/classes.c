/* SPDX-License-Identifier: Apache-2.0 */
/* A score for each class: the highest ones, after the activation. Whatever shows the classes of a
 * frame has them from here. */
#include <math.h>

#include "base/base.h"
#include "ipc/decode/decoder.h"

static int check(struct piped_decoder *d)
{
    d->classes = d->only->count;
    return decode_scratch(d, d->classes * sizeof(double));
}

/* Boxes of the classes whose probability is @least, the best @most. Those that a probability cannot
 * tell apart are ordered by what the model gives. Beside NaN or infinity no class is the best. */
static void find_best(struct piped_decoder *d, double least, size_t most)
{
    const struct decode_tensor *t = d->only;
    double *p = d->scratch;

    for (size_t k = 0; k < d->classes; k++) {
        p[k] = (double)t->values[k];
    }
    decode_activated(d, p, d->classes);
    for (size_t k = 0; k < d->classes; k++) {
        struct decode_box b = {.score = (double)t->values[k], .number = (int32_t)k, .order = k};

        if (!(p[k] < INFINITY)) {
            d->failed = ipc_client_error(-EDOM,
                                         "output %s has a score that is infinite or not a number, "
                                         "so no class is the best",
                                         t->name);
            return;
        }
        if (p[k] >= least && p[k] > -INFINITY) {
            decode_add_box(d, &b);
        }
    }
    decode_sort(d, most);
    for (size_t i = 0; i < d->box_count; i++) {
        d->boxes[i].score = p[d->boxes[i].order];
    }
}

static void run(struct piped_decoder *d)
{
    find_best(d, d->set.score, d->set.most);
}

int piped_decode_classes(struct piped_decoder *d, const void *output, uint32_t most,
                         const struct piped_class **ret, uint32_t *ret_count)
{
    const struct decode_tensor *t = d->only;

    if (d->set.kind != OUTPUT_CLASSES) {
        return ipc_client_error(-EINVAL,
                                "the model's outputs are %s, and not the scores of classes",
                                output_kind_words[d->set.kind]);
    }
    d->box_count = 0;
    d->failed = 0;
    decode_take(d, output, NULL);
    find_best(d, -INFINITY, most);
    if (d->failed || !decode_grow(d, &d->best, &d->best_size, d->box_count, sizeof(*d->best))) {
        return d->failed;
    }
    for (size_t i = 0; i < d->box_count; i++) {
        const struct decode_box *b = &d->boxes[i];

        d->best[i] = (struct piped_class){.number = b->number,
                                          .score = t->values[b->order],
                                          .probability = (float)b->score,
                                          .label = decode_label(d, b->number)};
    }
    *ret = d->best;
    *ret_count = (uint32_t)d->box_count;
    return 0;
}

const struct decode_kind decode_classes = {check, run, .one = true};
