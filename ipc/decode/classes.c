/* SPDX-License-Identifier: Apache-2.0 */
/* A score for each class: the highest ones, after the activation. */
#include <errno.h>
#include <math.h>

#include "base.h"
#include "ipc/decode/decoder.h"

static int check(struct piped_decoder *d)
{
    int rc = decode_need(d, OUTPUT_AS_BOXES, 0, 1);

    if (rc == 0) {
        d->classes = decode_one(d, OUTPUT_AS_BOXES, 0)->count;
        d->scratch = calloc(d->classes, sizeof(double));
        rc = d->scratch ? 0 : ipc_client_error(-ENOMEM, "out of memory");
    }
    return rc;
}

static void run(struct piped_decoder *d)
{
    const struct decode_tensor *t = decode_one(d, OUTPUT_AS_BOXES, 0);
    double *s = d->scratch;

    for (size_t k = 0; k < d->classes; k++) {
        s[k] = (double)t->values[k];
    }
    decode_activated(d, s, d->classes);
    for (size_t k = 0; k < d->classes; k++) {
        struct decode_box b = {.score = s[k], .number = (int32_t)k, .order = k};

        if (s[k] >= d->set.score) {
            decode_add_box(d, &b);
        }
    }
    decode_sort(d, d->set.most);
}

const struct decode_kind decode_classes = {check, run};
