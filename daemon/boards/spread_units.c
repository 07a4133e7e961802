/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_units.h"

#include "base/base.h"
#include "model/segment/segment.h"

/* Bytes in the arena that some op of the unit needs. */
static double arena_of(const struct mdl_model *m, const struct mdl_unit *unit)
{
    double bytes = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];

        if (s->home == MDL_HOME_ARENA && s->first_op <= unit->last_op &&
            s->last_op >= unit->first_op) {
            bytes += (double)s->bytes;
        }
    }
    return base_min(bytes, (double)m->arena_bytes);
}

/* Some primitives read the file's weights as they are. */
static double weights_of(const struct krn_net *net, const struct mdl_unit *unit)
{
    size_t packed = net ? krn_net_ops_need_bytes(net, unit->first_op, unit->last_op) : 0;

    return (double)base_max(packed, unit->weight_bytes);
}

/* Bytes on a link. */
static double bytes_of(const struct mdl_model *m, const struct mdl_border *border,
                       enum brd_encoding encoding)
{
    double bytes = 0;

    for (size_t i = 0; i < border->count; i++) {
        const struct mdl_live *l = &border->live[i];
        bool encoded = l->dtype == MDL_F32 && m->storages[l->storage].home != MDL_HOME_INPUT;

        bytes += encoded ? (double)brd_encoded_bytes(encoding, l->bytes / sizeof(float))
                         : (double)l->bytes;
    }
    return bytes;
}

int dmn_spread_units(const struct mdl_model *m, const struct krn_net *net,
                     enum brd_encoding encoding, struct tun_problem *p)
{
    if (p->unit_count != m->unit_count) {
        return -EINVAL;
    }
    for (size_t u = 0; u <= m->unit_count; u++) {
        struct mdl_border border;
        int error = mdl_border(m, u, &border);

        if (error) {
            return error;
        }
        if (u == 0) {
            p->boards.input_bytes = (double)border.bytes;
        } else if (u == m->unit_count) {
            p->boards.output_bytes = (double)border.bytes;
        } else {
            p->units[u].in_bytes = bytes_of(m, &border, encoding);
        }
        mdl_border_deinit(&border);
        if (u < m->unit_count) {
            p->units[u].weight_bytes = weights_of(net, &m->units[u]);
            p->units[u].arena_bytes = arena_of(m, &m->units[u]);
        }
    }
    return 0;
}
