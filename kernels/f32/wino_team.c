/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/wino_team.h"

#include "kernels/common/uneven.h"

/* The layout of v, u and m in scratch; sizes in bytes. */
struct layout {
    size_t parts;
    bool by_panels; /* parts share panels, not tiles */
    size_t tiles;   /* of a block at most */
    size_t v, u, m; /* of one block of channels; of one panel; of one panel */
    size_t v_count, u_count, m_count;
    size_t m_panels; /* kept at a time */
};

static struct layout layout_of(const struct krn_wino_plan *p, size_t width)
{
    const struct krn_wino_work *w = &p->work;
    struct layout l = {.parts = base_max(width, 1u), .u = p->u_bytes};
    size_t members = krn_uneven_members(l.parts);

    l.by_panels = members > 1 && w->panels >= members && 2 * w->tiles <= members * w->tiles_max;
    l.tiles = l.by_panels ? w->tiles : base_min(w->tiles, w->tiles_max);
    l.m_panels = w->blocks > 1 ? w->panels : 1;
    l.v_count = l.by_panels ? w->blocks : l.parts;
    l.u_count = l.parts;
    l.m_count = l.by_panels && w->blocks > 1 ? w->panels : l.m_panels * l.parts;
    l.v =
        p->points * krn_wino_v_point(p, l.tiles, p->channels) * (BASE_CACHE_LINE_BYTES / p->piece);
    l.m = p->points * krn_wino_m_point(p, l.tiles) * 4;
    return l;
}

size_t krn_wino_scratch(const struct krn_wino_plan *p, size_t width)
{
    struct layout l = layout_of(p, width);

    return l.v * l.v_count + l.u * l.u_count + l.m * l.m_count;
}

/* Where tile t lies: its image, and its corner in y. */
struct corner {
    size_t n, y, x;
};
static struct corner corner_of(const struct krn_wino_plan *p, size_t t)
{
    return (struct corner){.n = t / p->cols / p->rows,
                           .y = t / p->cols % p->rows * p->size[0],
                           .x = t % p->cols * p->size[1]};
}

struct krn_wino_place krn_wino_place(const struct krn_wino_plan *p, size_t t)
{
    const struct krn_img *y = &p->c.y;
    struct corner at = corner_of(p, t);

    return (struct krn_wino_place){.pixel = (at.n * y->h + at.y) * y->w + at.x,
                                   .rows = base_min(p->size[0], y->h - at.y),
                                   .cols = base_min(p->size[1], y->w - at.x)};
}

/* addresses of a tile's pixels, all of which lie in the image, the first one at @from */
static inline __attribute__((always_inline)) void inner_pixels(const uint8_t *from, size_t row,
                                                               size_t step, size_t rows,
                                                               size_t cols, const void **ret)
{
    for (size_t y = 0; y < rows; y++, from += row) {
#pragma GCC unroll 8
        for (size_t x = 0; x < cols; x++) {
            *ret++ = from + x * step;
        }
    }
}

/* the same for a tile that reaches beyond the image, whose pixels @in_y and @in_x lie in it, the
 * first of them at @from; the others are zeros */
static void border_pixels(const uint8_t *from, size_t row, size_t step, const size_t span[2],
                          struct krn_range in_y, struct krn_range in_x, const void *zeros,
                          const void **ret)
{
    for (size_t y = 0; y < span[0]; y++) {
        struct krn_range in = y >= in_y.begin && y < in_y.end ? in_x : (struct krn_range){0, 0};
        size_t x = 0;

        for (; x < in.begin; x++) {
            *ret++ = zeros;
        }
        for (const uint8_t *at = from; x < in.end; x++, at += step) {
            *ret++ = at;
        }
        for (; x < span[1]; x++) {
            *ret++ = zeros;
        }
        from += in.end > in.begin ? row : 0;
    }
}

/* the first pixel that lies in the image, of a tile from @first on; 0 if none does */
static size_t first_in(ptrdiff_t first, struct krn_range in)
{
    return in.begin < in.end ? (size_t)(first + (ptrdiff_t)in.begin) : 0;
}

/* addresses of the pixels of tile @t, row by row, at channel @channel; @ret: [points] */
static void pixels_of(const struct krn_wino_job *j, size_t t, size_t channel, const void **ret)
{
    const struct krn_wino_plan *p = j->plan;
    const struct krn_img *x = &p->c.x;
    struct corner at = corner_of(p, t);
    ptrdiff_t iy = (ptrdiff_t)at.y - p->c.win.top, ix = (ptrdiff_t)at.x - p->c.win.left;
    struct krn_range in_y = krn_taps(iy, p->span[0], 1, x->h);
    struct krn_range in_x = krn_taps(ix, p->span[1], 1, x->w);
    size_t row = x->row * p->x_bytes, step = x->pixel * p->x_bytes;
    const uint8_t *from = (const uint8_t *)j->call->in[0] +
                          (at.n * x->batch + channel) * p->x_bytes + first_in(iy, in_y) * row +
                          first_in(ix, in_x) * step;

    if (in_y.end - in_y.begin != p->span[0] || in_x.end - in_x.begin != p->span[1]) {
        border_pixels(from, row, step, p->span, in_y, in_x, j->zeros, ret);
    } else if (p->points == 16) {
        inner_pixels(from, row, step, 4, 4, ret);
    } else if (p->points == 36) {
        inner_pixels(from, row, step, 6, 6, ret);
    } else {
        inner_pixels(from, row, step, p->span[0], p->span[1], ret);
    }
}

/* a run, shared by all parts */
struct shared {
    const struct krn_wino_job *job;
    struct layout layout;
};

static uint8_t *v_of(const struct shared *s, size_t index)
{
    return s->job->call->scratch + s->layout.v * index;
}

static uint8_t *u_of(const struct shared *s, size_t part)
{
    return v_of(s, s->layout.v_count) + s->layout.u * part;
}

static uint8_t *m_of(const struct shared *s, size_t index)
{
    return u_of(s, s->layout.u_count) + s->layout.m * index;
}

static size_t groups_of(const struct krn_wino_plan *p, size_t tiles)
{
    return (tiles + p->work.rows - 1) / p->work.rows;
}

/* transforms a block of channels of some groups of the @tiles from tile @first on */
static void transform(const struct krn_wino_job *j, size_t first, size_t tiles,
                      struct krn_range groups, size_t block, uint8_t *v)
{
    const struct krn_wino_plan *p = j->plan;
    struct krn_range channels = krn_wino_block(p, block);
    size_t count = channels.end - channels.begin, all = groups_of(p, tiles);
    size_t group = (count + p->piece - 1) / p->piece * p->work.rows * BASE_CACHE_LINE_BYTES;
    size_t v_point = krn_wino_v_point(p, tiles, count);
    const void *at[KRN_WINO_POINTS_MAX];

    for (size_t g = groups.begin; g < groups.end; g++) {
        size_t from = krn_tile_first(tiles, all, g), to = krn_tile_first(tiles, all, g + 1);

        for (size_t t = from; t < to; t++) {
            pixels_of(j, first + t, channels.begin, at);
            j->transform(j, at, count, v + g * group + (t - from) * BASE_CACHE_LINE_BYTES, v_point);
        }
    }
}

/* all panels of a share of the tiles */
static void tiles_run(void *arg, size_t part)
{
    const struct shared *s = arg;
    const struct krn_wino_job *j = s->job;
    const struct krn_wino_work *w = &j->plan->work;
    const struct layout *l = &s->layout;
    struct krn_range share = krn_share_run(w->tiles, w->rows, part, l->parts);
    uint8_t *v = v_of(s, part);

    while (share.begin < share.end) {
        size_t left = share.end - share.begin, chunks = (left + l->tiles - 1) / l->tiles;
        size_t now = (left + chunks - 1) / chunks;

        for (size_t b = 0; b < w->blocks; b++) {
            transform(j, share.begin, now, (struct krn_range){0, groups_of(j->plan, now)}, b, v);
            for (size_t panel = 0; panel < w->panels; panel++) {
                uint8_t *m = m_of(s, part * l->m_panels + (l->m_panels > 1 ? panel : 0));

                j->multiply(j, b, panel, now, v, u_of(s, part), m);
                if (b + 1 == w->blocks) {
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
    const struct shared *s = arg;
    const struct krn_wino_work *w = &s->job->plan->work;
    size_t groups = groups_of(s->job->plan, w->tiles);
    struct krn_range share = krn_share_run(groups * w->blocks, 1, part, s->layout.parts);

    for (size_t i = share.begin; i < share.end; i++) {
        size_t b = i / groups, g = i % groups;

        transform(s->job, 0, w->tiles, (struct krn_range){g, g + 1}, b, v_of(s, b));
    }
}

/* a share of the panels, of all tiles */
static void panels_run(void *arg, size_t part)
{
    const struct shared *s = arg;
    const struct krn_wino_job *j = s->job;
    const struct krn_wino_work *w = &j->plan->work;
    struct krn_range share = krn_share_run(w->panels, 1, part, s->layout.parts);

    for (size_t b = 0; b < w->blocks; b++) {
        for (size_t panel = share.begin; panel < share.end; panel++) {
            uint8_t *m = m_of(s, s->layout.m_panels > 1 ? panel : part);

            j->multiply(j, b, panel, w->tiles, v_of(s, b), u_of(s, part), m);
            if (b + 1 == w->blocks) {
                j->output(j, panel, 0, w->tiles, m);
            }
        }
    }
}

void krn_wino_run(const struct krn_wino_job *j)
{
    struct shared s = {.job = j, .layout = layout_of(j->plan, j->call->width)};
    pthreadpool_t pool = j->call->pool;

    if (s.layout.by_panels) {
        krn_parallel(pool, s.layout.parts, inputs_run, &s);
        krn_parallel(pool, s.layout.parts, panels_run, &s);
    } else {
        krn_parallel(pool, s.layout.parts, tiles_run, &s);
    }
}
