/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/strassen.h"

#include "base/base.h"
#include "kernels/f32/igemm_tile.h"

/* products in the order in which a register tile computes them */
enum { AT_W11, AT_W21, AT_T2, AT_T3, AT_T4, AT_T1, AT_W22 };

static size_t pair_floats(size_t k)
{
    return KRN_STRASSEN_PRODUCTS * (k / 2) * KRN_TILE_LANES;
}

void KRN_ISA_FN(krn_strassen_pack)(float *dst, const uint8_t *w, size_t k, size_t out, ptrdiff_t so,
                                   ptrdiff_t sc, const float *scale)
{
    const size_t half = k / 2, piece = half * KRN_TILE_LANES;
    size_t o = 0;

    for (size_t pair = 0; pair < krn_strassen_panels(out); pair++, dst += pair_floats(k)) {
        static const uint8_t slots[2][2] = {{AT_W11, AT_W21}, {AT_T1, AT_W22}};

        for (size_t i = 0; i < 4; i++) { /* w12 in the place of T1 */
            size_t from = o + i / 2 * KRN_TILE_LANES;
            ptrdiff_t at = (ptrdiff_t)from * so + (ptrdiff_t)(i % 2 * half) * sc;

            KRN_ISA_FN(krn_igemm_pack)
            (dst + slots[i / 2][i % 2] * piece, w + at * (ptrdiff_t)sizeof(float), 1, half,
             KRN_TILE_LANES, so, 0, sc, scale ? scale + from : NULL, 1.0f);
        }
        for (size_t i = 0; i < piece; i += KRN_VL) {
            float *p = dst + i;
            vf w12 = vf_load(p + AT_T1 * piece), w22 = vf_load(p + AT_W22 * piece);
            vf t1 = w12 - vf_load(p + AT_W11 * piece), t2 = w22 - t1;

            vf_store(p + AT_T1 * piece, t1);
            vf_store(p + AT_T2 * piece, t2);
            vf_store(p + AT_T3 * piece, w22 - w12);
            vf_store(p + AT_T4 * piece, vf_load(p + AT_W21 * piece) - t2);
        }
        o += 2 * KRN_TILE_LANES;
    }
    KRN_ISA_FN(krn_igemm_pack)
    (dst, w + (ptrdiff_t)o * so * (ptrdiff_t)sizeof(float), 1, k, out - o, so, 0, sc,
     scale ? scale + o : NULL, 1.0f);
}

/* a walk over the pixels of an image in order */
struct walk {
    const struct krn_strassen_in *in;
    size_t ox, oy;
    const float *image;
};

static struct walk walk_from(const struct krn_strassen_in *in, size_t pixel)
{
    return (struct walk){.in = in,
                         .ox = pixel % in->w,
                         .oy = pixel / in->w % in->h,
                         .image = in->x + pixel / in->w / in->h * in->batch};
}

KRN_INLINE const float *walk_next(struct walk *w)
{
    const float *at = w->image + w->oy * w->in->row + w->ox * w->in->pixel;

    if (++w->ox == w->in->w) {
        w->ox = 0;
        if (++w->oy == w->in->h) {
            w->oy = 0;
            w->image += w->in->batch;
        }
    }
    return at;
}

/* first pair of tile @t of @tiles; tiles with an extra row come first */
static size_t tile_first(size_t pairs, size_t tiles, size_t t)
{
    return pairs / tiles * t + base_min(t, pairs % tiles);
}

static float *tile_rows(const struct krn_strassen_block *b, size_t k, size_t product, size_t tile)
{
    size_t tiles = krn_tile_count(krn_strassen_pairs(b->pixels));

    return b->rows + (product * tiles + tile) * krn_strassen_tile(k);
}

/* @n channels of one pair, into the rows of each product, @product floats apart */
KRN_INLINE void rows_of_vector(const float *even, const float *odd, size_t half, size_t n,
                               float *to, size_t product)
{
    vf x11 = vf_load_any(even, n), x12 = vf_load_any(even + half, n);
    vf x21 = vf_load_any(odd, n), x22 = vf_load_any(odd + half, n);
    vf s1 = x21 + x22, s2 = s1 - x11;

    vf_store(to + AT_W11 * product, x11);
    vf_store(to + AT_W21 * product, x12);
    vf_store(to + AT_T2 * product, s2);
    vf_store(to + AT_T3 * product, x11 - x21);
    vf_store(to + AT_T4 * product, x22);
    vf_store(to + AT_T1 * product, s1);
    vf_store(to + AT_W22 * product, x12 - s2);
}

void KRN_ISA_FN(krn_strassen_rows_of)(const struct krn_strassen_in *in, size_t from, size_t k,
                                      const struct krn_strassen_block *b, struct krn_range tiles)
{
    size_t pairs = krn_strassen_pairs(b->pixels), all = krn_tile_count(pairs);
    const size_t half = k / 2, product = all * krn_strassen_tile(k);
    size_t first = tile_first(pairs, all, tiles.begin);
    struct walk w = walk_from(in, from + 2 * first);

    for (size_t t = tiles.begin; t < tiles.end; t++) {
        size_t next = tile_first(pairs, all, t + 1);
        float *to = tile_rows(b, k, 0, t);

        for (; first < next; first++, to += KRN_TILE_PIECE) {
            const float *even = walk_next(&w);
            const float *odd = 2 * first + 1 < b->pixels ? walk_next(&w) : even;

            for (size_t c = 0; c < half; c += KRN_VL) {
                float *at =
                    to + c / KRN_TILE_PIECE * KRN_TILE_ROWS * KRN_TILE_PIECE + c % KRN_TILE_PIECE;

                if (c + KRN_VL <= half) {
                    rows_of_vector(even + c, odd + c, half, KRN_VL, at, product);
                } else {
                    rows_of_vector(even + c, odd + c, half, half - c, at, product);
                }
            }
        }
    }
}

typedef vf slot[KRN_TILE_ROWS][2]; /* a stored register tile */

/* one product of some tiles of the same height */
struct tiles {
    size_t count;
    const float *rows;
    size_t next; /* floats from one tile's rows to the next */
    size_t half; /* of k */
    const float *panel;
    struct krn_tile_ahead ahead;
    slot *slots;             /* KRN_STRASSEN_SLOTS further for each tile */
    int in, keep;            /* the slot to add, and the slot to store the sum in, or -1 */
    bool plus;               /* slot 0 becomes U2 + P5, the sum U3 + P5 */
    bool finish;             /* and store */
    size_t there;            /* rows in total; the last one may be missing */
    struct krn_tile_out out; /* of the first tile */
};

KRN_INLINE void copy(vf (*to)[2], vf (*from)[2], const size_t height)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        to[i][0] = from[i][0];
        to[i][1] = from[i][1];
    }
}

KRN_INLINE void add(vf (*to)[2], vf (*what)[2], const size_t height)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < height; i++) {
        to[i][0] += what[i][0];
        to[i][1] += what[i][1];
    }
}

/* @height is a constant wherever this is inlined */
KRN_INLINE void run_tiles(struct tiles *t, const size_t height)
{
    struct krn_tile_ahead ahead = t->ahead;
    struct krn_tile_out out = t->out;
    const float *rows = t->rows;
    slot *slots = t->slots;
    size_t there = t->there;

    for (size_t n = 0; n < t->count; n++) {
        slot acc;

        if (t->finish) {
            krn_tile_expect(&out, height, 2);
        }
        if (t->in >= 0) {
            copy(acc, slots[t->in], height);
        } else {
            krn_tile_zero(acc, height);
        }
        krn_tile_add_packed(acc, rows, t->half, t->panel, &ahead, height, 2);
        if (t->keep >= 0) {
            copy(slots[t->keep], acc, height);
        }
        if (t->plus) {
            add(slots[0], acc, height);
            add(acc, slots[1], height);
        }
        if (t->finish && there >= height) {
            krn_tile_store(&out, height, 2, acc);
        } else if (t->finish) {
            slot memory;

            copy(memory, acc, height);
            krn_tile_finish(&out, there, 2, memory);
        }
        rows += t->next;
        slots += KRN_STRASSEN_SLOTS;
        out.first += height;
        out.y += height * out.y_pixel;
        there -= base_min(there, height);
    }
    t->rows = rows;
    t->slots = slots;
    t->ahead = ahead;
}

#define TILE(height)                                                                               \
    static __attribute__((noinline)) void tiles_##height(struct tiles *t)                          \
    {                                                                                              \
        run_tiles(t, height);                                                                      \
    }
KRN_TILE_HEIGHTS(TILE)

#define ITEM(height) tiles_##height,
static void (*const tiles_of[KRN_TILE_ROWS])(struct tiles *) = {KRN_TILE_HEIGHTS(ITEM)};

/* what to do before and after a product; slot -1: none */
struct step {
    int in, keep;
    bool plus;    /* slot 0 becomes U2 + P5, the sum U3 + P5 */
    int finishes; /* quarter of the results: 2 odd + second panel, or none */
};
static const struct step steps[KRN_STRASSEN_PRODUCTS] = {
    [AT_W11] = {.in = -1, .keep = 0, .finishes = -1},
    [AT_W21] = {.in = 0, .keep = -1},
    [AT_T2] = {.in = 0, .keep = 0, .finishes = -1},
    [AT_T3] = {.in = 0, .keep = 1, .finishes = -1},
    [AT_T4] = {.in = 1, .keep = -1, .finishes = 2},
    [AT_T1] = {.in = -1, .keep = -1, .plus = true, .finishes = 3},
    [AT_W22] = {.in = 0, .keep = -1, .finishes = 1},
};

struct pass {
    const struct krn_strassen *g;
    const struct krn_strassen_block *b;
    struct krn_epilogue epilogue[2]; /* of even and odd pixels */
    size_t pair;                     /* of panels */
};

/* the place of pair @done and later ones, in one quarter of the results */
static struct krn_tile_out place(const struct pass *p, size_t quarter, size_t done)
{
    const size_t channel = (2 * p->pair + quarter % 2) * KRN_TILE_LANES;
    const size_t pixel = p->b->first + 2 * done + quarter / 2;
    struct krn_tile_out out = {.y = p->g->y + pixel * p->g->y_pixel + channel,
                               .y_pixel = 2 * p->g->y_pixel,
                               .first = pixel / 2,
                               .channel = channel,
                               .channels = KRN_TILE_LANES};

    krn_tile_finish_of(&p->epilogue[quarter / 2], &out);
    return out;
}

/* one product of all tiles; @last: no weights follow it */
static void product_run(const struct pass *p, size_t product, const float *panel, bool last)
{
    const struct krn_strassen_block *b = p->b;
    const size_t pairs = krn_strassen_pairs(b->pixels), count = krn_tile_count(pairs);
    const size_t half = p->g->k / 2, floats = half * KRN_TILE_LANES;
    const struct step *s = &steps[product];
    struct tiles t = {
        .rows = tile_rows(b, p->g->k, product, 0),
        .next = krn_strassen_tile(p->g->k),
        .half = half,
        .panel = panel,
        .ahead = krn_tile_ahead_of(panel + floats, last ? 0 : floats * sizeof(float), count),
        .slots = (slot *)(void *)b->slots,
        .in = s->in,
        .keep = s->keep,
        .plus = s->plus,
        .finish = s->finishes >= 0,
    };
    size_t done = 0;

    for (size_t higher = 2; higher-- > 0;) { /* tiles with an extra row come first */
        size_t height = pairs / count + higher;

        t.count = higher ? pairs % count : count - pairs % count;
        if (t.count == 0) {
            continue;
        }
        if (t.finish) {
            t.out = place(p, (size_t)s->finishes, done);
            t.there = (s->finishes >= 2 ? b->pixels / 2 : pairs) - done;
        }
        tiles_of[height - 1](&t);
        done += t.count * height;
    }
}

void KRN_ISA_FN(krn_strassen_panels_run)(const struct krn_strassen *g,
                                         const struct krn_strassen_block *b,
                                         struct krn_range panels)
{
    struct pass pass = {.g = g, .b = b, .epilogue = {g->epilogue, g->epilogue}};
    const float *panel = g->packed + panels.begin * pair_floats(g->k);

    pass.epilogue[0].res_pixel = pass.epilogue[1].res_pixel = 2 * g->epilogue.res_pixel;
    if (g->epilogue.res) {
        pass.epilogue[1].res += g->epilogue.res_pixel;
    }
    for (pass.pair = panels.begin; pass.pair < panels.end; pass.pair++) {
        for (size_t product = 0; product < KRN_STRASSEN_PRODUCTS; product++) {
            product_run(&pass, product, panel,
                        pass.pair + 1 == panels.end && product + 1 == KRN_STRASSEN_PRODUCTS);
            panel += g->k / 2 * KRN_TILE_LANES;
        }
    }
}

void KRN_ISA_FN(krn_strassen_rest)(const struct krn_strassen *g, const struct krn_strassen_in *in,
                                   size_t from, const struct krn_strassen_block *b)
{
    size_t pairs = krn_strassen_panels(g->out), tiles = krn_tile_count(b->pixels), next = 0;
    struct walk w = walk_from(in, from);
    struct krn_igemm rest = {.taps = 1,
                             .len = g->k,
                             .out = g->out - pairs * 2 * KRN_TILE_LANES,
                             .packed = g->packed + pairs * pair_floats(g->k),
                             .epilogue = g->epilogue,
                             .channel = pairs * 2 * KRN_TILE_LANES,
                             .y = g->y,
                             .y_pixel = g->y_pixel};

    if (rest.out == 0) {
        return;
    }
    for (size_t t = 0; t < tiles; t++) {
        size_t first = next;

        next = krn_tile_first(b->pixels, tiles, t + 1);
        for (size_t i = first; i < next; i++) {
            b->rest[t * KRN_TILE_ROWS + i - first] = walk_next(&w);
        }
    }
    KRN_ISA_FN(krn_igemm_block)
    (&rest, b->rest, b->first, b->pixels, (struct krn_range){0, krn_panel_count(rest.out)});
}

void KRN_ISA_FN(krn_strassen_block_run)(const struct krn_strassen *g,
                                        const struct krn_strassen_in *in, size_t from,
                                        const struct krn_strassen_block *b)
{
    size_t tiles = krn_tile_count(krn_strassen_pairs(b->pixels));

    KRN_ISA_FN(krn_strassen_rows_of)(in, from, g->k, b, (struct krn_range){0, tiles});
    KRN_ISA_FN(krn_strassen_panels_run)
    (g, b, (struct krn_range){0, krn_strassen_panels(g->out)});
    KRN_ISA_FN(krn_strassen_rest)(g, in, from, b);
}
