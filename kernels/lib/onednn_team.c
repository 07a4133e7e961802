/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/onednn_team.h"

size_t krn_dnnl_width(size_t width)
{
    return base_min(base_max(width, (size_t)1), (size_t)KRN_DNNL_WIDTH_MAX);
}

void krn_dnnl_widths_init(struct krn_dnnl_widths *w)
{
    *w = (struct krn_dnnl_widths){0};
    pthread_mutex_init(&w->lock, NULL);
}

void krn_dnnl_widths_deinit(struct krn_dnnl_widths *w, void (*free_one)(void *made))
{
    for (size_t i = 0; i <= KRN_DNNL_WIDTH_MAX; i++) {
        void *made = atomic_load(&w->made[i]);

        if (made) {
            free_one(made);
        }
    }
    pthread_mutex_destroy(&w->lock);
}

int krn_dnnl_widths_prepare(struct krn_dnnl_widths *w, size_t width,
                            int (*make)(const void *of, size_t width, void **ret), const void *of)
{
    void *made;
    int r = 0;

    width = krn_dnnl_width(width);
    pthread_mutex_lock(&w->lock);
    if (!atomic_load(&w->made[width])) {
        krn_dnnl_alone();
        r = make(of, width, &made);
        if (r == 0) {
            atomic_store(&w->made[width], made);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

void *krn_dnnl_widths_get(struct krn_dnnl_widths *w, size_t width)
{
    void *made = atomic_load_explicit(&w->made[krn_dnnl_width(width)], memory_order_acquire);

    return made ? made : atomic_load(&w->made[1]);
}

/* one row of pixels */
static struct krn_img pixels_of(const struct krn_img *i, size_t pixels)
{
    return (struct krn_img){.n = 1,
                            .h = 1,
                            .w = pixels,
                            .c = i->c,
                            .pixel = i->pixel,
                            .row = pixels * i->pixel,
                            .batch = pixels * i->pixel};
}

/* The share @at. @ret_x: offset of its input in elements. Return: false if it would have no
 * input. */
static bool shape_of(const struct krn_dnnl_team *t, struct krn_range at, struct krn_dnnl_shape *ret,
                     size_t *ret_x)
{
    const struct krn_conv *c = &t->conv;
    const struct krn_win *w = &c->win;
    size_t count = at.end - at.begin;
    size_t span_h = (w->kh - 1) * w->dh + 1;
    struct krn_dnnl_shape s = {
        .x = c->x, .y = c->y, .left = (size_t)w->left, .top = (size_t)w->top};

    if (t->pointwise) {
        *ret = (struct krn_dnnl_shape){.x = pixels_of(&c->x, count), .y = pixels_of(&c->y, count)};
        *ret_x = at.begin * c->x.pixel;
        return true;
    }
    s.right = krn_conv_padding(w, &c->x, &c->y).right;
    if (c->y.n > 1) {
        s.x.n = s.y.n = count;
        s.bottom = krn_conv_padding(w, &c->x, &c->y).down;
        *ret_x = at.begin * s.x.batch;
    } else {
        /* includes the rows that the last stride skips: strided 1x1 kernels need them */
        size_t first = at.begin * w->sh, end = (at.end - 1) * w->sh + base_max(span_h, w->sh);
        size_t begin = first > s.top ? first - s.top : 0;

        if (end <= s.top || begin >= s.x.h) {
            return false;
        }
        end = base_min(end - s.top, s.x.h);
        s.top = first < s.top ? s.top - first : 0;
        *ret_x = begin * s.x.row;
        s.x.h = end - begin;
        s.y.h = count;
        s.x.batch = s.x.h * s.x.row;
        s.y.batch = s.y.h * s.y.row;
        s.bottom = krn_conv_padding_along(s.y.h, w->sh, span_h, s.top, s.x.h);
    }
    *ret = s;
    return true;
}

void krn_dnnl_team_init(struct krn_dnnl_team *t, const struct krn_conv *c,
                        int (*make)(const struct krn_dnnl_team *t,
                                    const struct krn_dnnl_shape *shape,
                                    struct krn_dnnl_pieces *ret))
{
    *t = (struct krn_dnnl_team){.conv = *c, .make = make};
    krn_dnnl_widths_init(&t->widths);
    t->pointwise = krn_conv_is_pointwise(c) && krn_img_flat(&c->x);
    t->shares_max = t->pointwise ? c->y.n * c->y.h * c->y.w : c->y.n > 1 ? c->y.n : c->y.h;
    t->pixels_each = c->y.n * c->y.h * c->y.w / t->shares_max;
}

bool krn_dnnl_team_whole(const struct krn_dnnl_team *t, struct krn_dnnl_shape *ret)
{
    size_t x;

    return shape_of(t, (struct krn_range){0, t->shares_max}, ret, &x);
}

static void pieces_deinit(struct krn_dnnl_pieces *p)
{
    krn_dnnl_deinit(&p->in);
    krn_dnnl_deinit(&p->conv);
    krn_dnnl_deinit(&p->out);
}

static void split_free(void *split)
{
    struct krn_dnnl_split *s = split;

    for (size_t i = 0; i < s->count; i++) {
        if (s->shares[i].owner) {
            pieces_deinit(s->shares[i].pieces);
            free(s->shares[i].pieces);
        }
    }
    free(s);
}

void krn_dnnl_team_deinit(struct krn_dnnl_team *t)
{
    krn_dnnl_widths_deinit(&t->widths, split_free);
}

static int share_init(const struct krn_dnnl_team *t, struct krn_dnnl_split *s, size_t i)
{
    struct krn_dnnl_share *share = &s->shares[i];
    struct krn_dnnl_pieces *p;
    int r;

    if (!shape_of(t, share->at, &share->shape, &share->x)) {
        return -EOPNOTSUPP;
    }
    for (size_t k = 0; k < i && !share->pieces; k++) {
        if (memcmp(&s->shares[k].shape, &share->shape, sizeof(share->shape)) == 0) {
            share->pieces = s->shares[k].pieces;
        }
    }
    if (!share->pieces) {
        share->pieces = calloc(1, sizeof(*share->pieces));
        if (!share->pieces) {
            return -ENOMEM;
        }
        share->owner = true;
        r = t->make(t, &share->shape, share->pieces);
        if (r < 0) {
            return r;
        }
        p = share->pieces;
        p->pad_bytes =
            krn_dnnl_align(base_max(krn_dnnl_scratch(&p->conv),
                                    base_max(krn_dnnl_scratch(&p->in), krn_dnnl_scratch(&p->out))));
    }
    s->share_bytes = base_max(s->share_bytes, share->pieces->x_bytes + share->pieces->y_bytes +
                                                  share->pieces->pad_bytes);
    return 0;
}

static int split_make(const void *team, size_t width, void **ret)
{
    const struct krn_dnnl_team *t = team;
    size_t count = base_min(width, t->shares_max);
    struct krn_dnnl_split *s = calloc(1, sizeof(*s) + count * sizeof(s->shares[0]));
    int r = 0;

    if (!s) {
        return -ENOMEM;
    }
    s->count = count;
    for (size_t i = 0; i < count && r == 0; i++) {
        /* so the shares of half as many are pairs of these */
        s->shares[i].at =
            (struct krn_range){t->shares_max * i / count, t->shares_max * (i + 1) / count};
        r = share_init(t, s, i);
    }
    if (r < 0) {
        split_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int krn_dnnl_team_prepare(struct krn_dnnl_team *t, size_t width)
{
    return krn_dnnl_widths_prepare(&t->widths, width, split_make, t);
}

/* The share of @width that is the rows from @rows.begin on, at most those, and needs no more than
 * @bytes of scratch; NULL: there is none. */
static const struct krn_dnnl_share *share_at(struct krn_dnnl_team *t, size_t width,
                                             struct krn_range rows, size_t bytes)
{
    const struct krn_dnnl_split *s = krn_dnnl_widths_get(&t->widths, width);
    size_t i = s ? (rows.begin * s->count + t->shares_max - 1) / t->shares_max : 0;
    const struct krn_dnnl_share *share = s && i < s->count ? &s->shares[i] : NULL;

    return share && share->at.begin == rows.begin && share->at.end <= rows.end &&
                   share->pieces->x_bytes + share->pieces->y_bytes + share->pieces->pad_bytes <=
                       bytes
               ? share
               : NULL;
}

const struct krn_dnnl_share *krn_dnnl_team_next(struct krn_dnnl_team *t,
                                                const struct krn_dnnl_split *split, size_t part,
                                                size_t *io_end)
{
    for (size_t width = 2; *io_end > part + 1 && width < split->count; width *= 2) {
        struct krn_range rows = {split->shares[part].at.begin, split->shares[*io_end - 1].at.end};
        size_t room = (*io_end - part) * split->share_bytes;
        const struct krn_dnnl_share *share = share_at(t, width, rows, room);
        size_t end = part;

        while (share && end < *io_end && split->shares[end].at.end <= share->at.end) {
            end++;
        }
        if (share && end > part && split->shares[end - 1].at.end == share->at.end) {
            *io_end = end;
            return share;
        }
    }
    *io_end = part + 1;
    return &split->shares[part];
}

static size_t split_scratch(const struct krn_dnnl_team *t, size_t width)
{
    const struct krn_dnnl_split *s;
    size_t bytes = 0;
    void *made;

    if (split_make(t, width, &made) == 0) {
        s = made;
        bytes = s->count * s->share_bytes;
        split_free(made);
    }
    return bytes;
}

size_t krn_dnnl_team_scratch(const struct krn_dnnl_team *t, size_t width)
{
    size_t alone = split_scratch(t, 1); /* what runs where the width could not be prepared */

    width = krn_dnnl_width(width);
    return width > 1 ? base_max(alone, split_scratch(t, width)) : alone;
}
