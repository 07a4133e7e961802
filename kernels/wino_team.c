/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/wino_team.h"

#include "base.h"

struct krn_wino_layout krn_wino_layout(const struct krn_wino_work *w, size_t width)
{
    struct krn_wino_layout l = {.parts = base_max(width, 1u)};

    l.by_panels = l.parts > 1 && w->panels >= l.parts && 2 * w->tiles <= l.parts * w->tiles_max;
    l.tiles = l.by_panels ? w->tiles : base_min(w->tiles, w->tiles_max);
    l.m_panels = w->blocks > 1 ? w->panels : 1;
    l.v_count = l.by_panels ? w->blocks : l.parts;
    l.u_count = l.parts;
    l.m_count = l.by_panels && w->blocks > 1 ? w->panels : l.m_panels * l.parts;
    return l;
}

size_t krn_wino_layout_bytes(const struct krn_wino_layout *l)
{
    return l->v * l->v_count + l->u * l->u_count + l->m * l->m_count;
}

static uint8_t *v_of(const struct krn_wino_job *j, size_t index)
{
    return j->scratch + j->layout.v * index;
}

static uint8_t *u_of(const struct krn_wino_job *j, size_t part)
{
    return v_of(j, j->layout.v_count) + j->layout.u * part;
}

static uint8_t *m_of(const struct krn_wino_job *j, size_t index)
{
    return u_of(j, j->layout.u_count) + j->layout.m * index;
}

static size_t groups_of(const struct krn_wino_job *j, size_t tiles)
{
    return (tiles + j->work.rows - 1) / j->work.rows;
}

/* all panels of a share of the tiles */
static void tiles_run(void *arg, size_t part)
{
    const struct krn_wino_job *j = arg;
    const struct krn_wino_layout *l = &j->layout;
    struct krn_range share = krn_share(j->work.tiles, j->work.rows, part, l->parts);
    uint8_t *v = v_of(j, part);

    while (share.begin < share.end) {
        size_t left = share.end - share.begin, chunks = (left + l->tiles - 1) / l->tiles;
        size_t now = (left + chunks - 1) / chunks;

        for (size_t b = 0; b < j->work.blocks; b++) {
            j->input(j, share.begin, now, (struct krn_range){0, groups_of(j, now)}, b, v);
            for (size_t panel = 0; panel < j->work.panels; panel++) {
                uint8_t *m = m_of(j, part * l->m_panels + (l->m_panels > 1 ? panel : 0));

                j->multiply(j, b, panel, now, v, u_of(j, part), m);
                if (b + 1 == j->work.blocks) {
                    j->output(j, panel, share.begin, now, m);
                }
            }
        }
        share.begin += now;
    }
}

/* a share of the groups and blocks of channels of the whole input */
static void inputs_run(void *arg, size_t part)
{
    const struct krn_wino_job *j = arg;
    size_t groups = groups_of(j, j->work.tiles);
    struct krn_range share = krn_share(groups * j->work.blocks, 1, part, j->layout.parts);

    for (size_t i = share.begin; i < share.end; i++) {
        size_t b = i / groups, g = i % groups;

        j->input(j, 0, j->work.tiles, (struct krn_range){g, g + 1}, b, v_of(j, b));
    }
}

/* a share of the panels, of all tiles */
static void panels_run(void *arg, size_t part)
{
    const struct krn_wino_job *j = arg;
    struct krn_range share = krn_share(j->work.panels, 1, part, j->layout.parts);

    for (size_t b = 0; b < j->work.blocks; b++) {
        for (size_t panel = share.begin; panel < share.end; panel++) {
            uint8_t *m = m_of(j, j->layout.m_panels > 1 ? panel : part);

            j->multiply(j, b, panel, j->work.tiles, v_of(j, b), u_of(j, part), m);
            if (b + 1 == j->work.blocks) {
                j->output(j, panel, 0, j->work.tiles, m);
            }
        }
    }
}

void krn_wino_run(struct krn_wino_job *j, pthreadpool_t pool)
{
    if (j->layout.by_panels) {
        krn_parallel(pool, j->layout.parts, inputs_run, j);
        krn_parallel(pool, j->layout.parts, panels_run, j);
    } else {
        krn_parallel(pool, j->layout.parts, tiles_run, j);
    }
}
