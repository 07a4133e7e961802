/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/travel.h"

#include "ipc/f16.h"

void dmn_travel_plan(const struct mdl_model *m, const struct mdl_io *ios, size_t count,
                     const size_t *here, size_t here_bytes, bool f16, struct dmn_travel *ret)
{
    size_t at = 0;

    *ret = (struct dmn_travel){.count = count, .here_bytes = here_bytes, .there_bytes = here_bytes};
    for (size_t i = 0; i < count; i++) {
        struct dmn_travel_tensor *t = &ret->tensor[i];

        *t = (struct dmn_travel_tensor){.here = here[i], .there = here[i], .bytes = ios[i].bytes};
        t->f16 = f16 && m->tensors[ios[i].tensor].dtype == MDL_F32;
        ret->converts |= t->f16;
    }
    for (size_t i = 0; ret->converts && i < count; i++) {
        ret->tensor[i].there = base_align_up(at, 64); /* at most as far as here: cannot overflow */
        at = ret->there_bytes = ret->tensor[i].there + dmn_travel_bytes(ret, i);
    }
}

void dmn_travel_in(const struct dmn_travel *t, const uint8_t *there, uint8_t *here)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct dmn_travel_tensor *x = &t->tensor[i];

        if (x->f16) {
            ipc_f16_decode(there + x->there, x->bytes / sizeof(float), here + x->here);
        } else {
            memcpy(here + x->here, there + x->there, x->bytes);
        }
    }
}

void dmn_travel_out(const struct dmn_travel *t, const uint8_t *here, uint8_t *there)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct dmn_travel_tensor *x = &t->tensor[i];

        if (x->f16) {
            ipc_f16_encode(here + x->here, x->bytes / sizeof(float), there + x->there);
        } else {
            memcpy(there + x->there, here + x->here, x->bytes);
        }
    }
}
