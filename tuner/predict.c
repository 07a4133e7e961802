/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/predict.h"

#include "base/base.h"

#define TERMS 8u
#define WIDE_TERMS 4u
/* A row of this size for every scaled column keeps coefficients near 0 that the benchmarks do not
 * determine. */
#define RIDGE 1e-6
/* Wider than one core is never taken to be more than so many times better than a fair share: the
 * line of eq. 8 has no floor of its own and passes 0 for light layers. */
#define SUPERLINEAR 2.0
#define SIGMA_LEAST 0.01

/* A least squares problem as an upper triangle with its right side, rows rotated in one by one
 * (Givens), so that nothing is stored and nothing is squared. */
struct fit {
    size_t terms;
    double scale[TERMS]; /* norm of each column; 0: the column is empty */
    double r[TERMS][TERMS + 1];
};

static bool usable(const struct tun_bench *b)
{
    return tun_positive(b->n) && tun_positive(b->k) && tun_positive(b->m) && b->width >= 1;
}

static bool is_conv(enum tun_layer layer)
{
    return layer == TUN_CONV || layer == TUN_PLAIN || layer == TUN_CONV3;
}

static enum tun_layer layer_of(const struct tun_bench *b)
{
    return is_conv(b->layer) && b->n == 1 ? TUN_FC : b->layer;
}

/* The terms of eq. 5 that are different from each other. */
static const bool TERMS_OF[TUN_LAYERS][TERMS] = {[TUN_CONV] = {1, 1, 1, 1, 1, 1, 1, 1},
                                                 [TUN_PLAIN] = {0, 0, 0, 1, 1, 1, 1, 1},
                                                 [TUN_CONV3] = {1, 1, 1, 1, 1, 1, 1, 1},
                                                 [TUN_FC] = {0, 1, 1, 0, 1, 0, 0, 1},
                                                 [TUN_DEPTHWISE] = {0, 0, 1, 0, 1, 1, 1, 1}};

static void terms_of(enum tun_layer layer, const struct tun_bench *b, double ret[TERMS])
{
    const double n = b->n, k = b->k, m = b->m;
    const double terms[TERMS] = {n, k, m, n * k, k * m, n * m, n * m * k, 1};

    for (size_t i = 0; i < TERMS; i++) {
        ret[i] = TERMS_OF[layer][i] ? terms[i] : 0;
    }
    if (layer == TUN_CONV3) {
        double side = ceil(sqrt(n) / TUN_TRANSFORMED) * TUN_TRANSFORMED, tiles = side * side;

        ret[0] = tiles * k;
        ret[1] = tiles * m;
        ret[2] = tiles * m * k;
    }
}

/* What eq. 8 adds to T / H, for a1 to a4. @single: T. */
static void wide_terms_of(const struct tun_bench *b, double single, double ret[WIDE_TERMS])
{
    const double h = (double)b->width;

    ret[0] = -1 / h;
    ret[1] = b->n / (TUN_TILE * h);
    ret[2] = 1;
    ret[3] = single * (1 - 1 / h);
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void fit_measure(struct fit *f, const double *row, double weight)
{
    for (size_t c = 0; c < f->terms; c++) {
        f->scale[c] = hypot(f->scale[c], row[c] * weight);
    }
}

/* Rotates a scaled row and its right side into the triangle. */
static void fit_rotate(struct fit *f, double row[TERMS + 1])
{
    for (size_t c = 0; c < f->terms; c++) {
        double norm = hypot(f->r[c][c], row[c]);
        double cosine, sine;

        if (norm == 0) {
            continue;
        }
        cosine = f->r[c][c] / norm;
        sine = row[c] / norm;
        for (size_t i = c; i <= f->terms; i++) {
            double above = f->r[c][i];

            f->r[c][i] = cosine * above + sine * row[i];
            row[i] = cosine * row[i] - sine * above;
        }
    }
}

static void fit_add(struct fit *f, const double *row, double right, double weight)
{
    double scaled[TERMS + 1];

    for (size_t c = 0; c < f->terms; c++) {
        scaled[c] = f->scale[c] > 0 ? row[c] * weight / f->scale[c] : 0;
    }
    scaled[f->terms] = right * weight;
    fit_rotate(f, scaled);
}

static void fit_solve(struct fit *f, double *ret)
{
    for (size_t c = 0; c < f->terms; c++) {
        double ridge[TERMS + 1] = {0};

        ridge[c] = RIDGE;
        fit_rotate(f, ridge);
    }
    for (size_t c = f->terms; c-- > 0;) {
        double sum = f->r[c][f->terms];

        for (size_t i = c + 1; i < f->terms; i++) {
            sum -= f->r[c][i] * ret[i];
        }
        ret[c] = sum / f->r[c][c];
    }
    for (size_t c = 0; c < f->terms; c++) {
        ret[c] = f->scale[c] > 0 ? ret[c] / f->scale[c] : 0;
    }
}

static double single_ns(const struct tun_predictor *p, enum tun_layer layer,
                        const struct tun_bench *b)
{
    double row[TERMS];

    terms_of(layer, b, row);
    return base_max(1.0, dot(row, p->fits[layer].b, TERMS));
}

/* By the fit of @layer. Return: ns, at least 1; -1 when it does not cover it. */
static double predict_ns(const struct tun_predictor *p, enum tun_layer layer,
                         const struct tun_bench *of)
{
    const struct tun_fit *wide = &p->fits[p->fits[layer].has_wide ? layer : TUN_CONV];
    double row[WIDE_TERMS], single, share;

    if (!usable(of) || !p->fits[layer].has || (of->width > 1 && !wide->has_wide)) {
        return -1;
    }
    single = single_ns(p, layer, of);
    if (of->width == 1) {
        return single;
    }
    share = single / (double)of->width;
    wide_terms_of(of, single, row);
    return base_max(1.0, base_max(share + dot(row, wide->a, WIDE_TERMS), share / SUPERLINEAR));
}

static bool is_row(const struct tun_bench *b, enum tun_layer layer, bool wide)
{
    return usable(b) && tun_positive(b->ns) && (b->width > 1) == wide &&
           (layer_of(b) == layer || (layer == TUN_CONV && is_conv(layer_of(b))));
}

/* Solves for the terms that are not left out. @ret: the fit. Return: rows. */
static size_t solve_rows(const struct tun_bench *benches, size_t count, enum tun_layer layer,
                         bool wide, const bool left_out[TERMS], struct tun_predictor *p,
                         struct fit *ret)
{
    double row[TERMS];
    size_t rows = 0;

    *ret = (struct fit){.terms = wide ? WIDE_TERMS : TERMS};
    for (int pass = 0; pass < 2; pass++) { /* scale, fit */
        for (size_t i = 0; i < count; i++) {
            const struct tun_bench *b = &benches[i];
            double right = b->ns;

            if (!is_row(b, layer, wide)) {
                continue;
            }
            if (wide) {
                wide_terms_of(b, single_ns(p, layer, b), row);
                right -= single_ns(p, layer, b) / b->width;
            } else {
                terms_of(layer, b, row);
            }
            for (size_t c = 0; c < ret->terms; c++) {
                row[c] = left_out[c] ? 0 : row[c];
            }
            if (pass == 0) {
                fit_measure(ret, row, 1 / b->ns);
                rows++;
            } else {
                fit_add(ret, row, right, 1 / b->ns);
            }
        }
    }
    fit_solve(ret, wide ? p->fits[layer].a : p->fits[layer].b);
    return rows;
}

/* Leaves out the term that takes most away. Return: none does. */
static bool all_add(const struct fit *f, const double *coefficients, bool left_out[TERMS])
{
    double least = 0;
    size_t worst = TERMS;

    for (size_t c = 0; c < f->terms; c++) {
        if (coefficients[c] * f->scale[c] < least) {
            least = coefficients[c] * f->scale[c];
            worst = c;
        }
    }
    if (worst < TERMS) {
        left_out[worst] = true;
    }
    return worst == TERMS;
}

/* Fits eq. 5 (@wide: eq. 8) to the rows of a kind of layer with one core (several). @least: rows
 * that it takes. */
static void fit_part(const struct tun_bench *benches, size_t count, enum tun_layer layer, bool wide,
                     size_t least, struct tun_predictor *p)
{
    struct tun_fit *to = &p->fits[layer];
    bool left_out[TERMS] = {false};
    double error = 0;
    struct fit f;
    size_t rows;

    do {
        rows = solve_rows(benches, count, layer, wide, left_out, p, &f);
    } while (!wide && !all_add(&f, to->b, left_out));
    *(wide ? &to->has_wide : &to->has) = rows >= least;
    for (size_t i = 0; i < count && rows >= least; i++) {
        if (is_row(&benches[i], layer, wide)) {
            error += fabs(predict_ns(p, layer, &benches[i]) / benches[i].ns - 1) / (double)rows;
        }
    }
    *(wide ? &to->error_wide : &to->error) = error;
}

int tun_predictor_fit(const struct tun_bench *benches, size_t count, struct tun_predictor *ret)
{
    static const size_t least[TUN_LAYERS] = {
        [TUN_CONV] = 8, [TUN_PLAIN] = 6, [TUN_CONV3] = 6, [TUN_FC] = 4, [TUN_DEPTHWISE] = 5};
    struct tun_predictor p = {0};

    for (size_t i = 0; i < TUN_LAYERS; i++) {
        fit_part(benches, count, (enum tun_layer)i, false, least[i], &p);
        if (p.fits[i].has) {
            fit_part(benches, count, (enum tun_layer)i, true, WIDE_TERMS, &p);
        }
    }
    if (!p.fits[TUN_CONV].has && !p.fits[TUN_FC].has) {
        return -EINVAL;
    }
    *ret = p;
    return 0;
}

/* The layer whose fit foretells @of: convolutions of all windows have one for those without their
 * own. */
static enum tun_layer fitted(const struct tun_predictor *p, const struct tun_bench *of)
{
    enum tun_layer layer = layer_of(of);

    return is_conv(layer) && !p->fits[layer].has ? TUN_CONV : layer;
}

double tun_predict_ns(const struct tun_predictor *p, const struct tun_bench *of)
{
    return predict_ns(p, fitted(p, of), of);
}

size_t tun_predict_costs(struct tun_problem *p, size_t ep, const struct tun_predictor *f)
{
    size_t set = 0;

    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        for (size_t u = 0; u < p->unit_count; u++) {
            struct tun_cell *cell = tun_cell_at(&p->costs, ep, w, u);
            const struct tun_unit *unit = &p->units[u];
            const struct tun_bench of = {.n = unit->gemm_n,
                                         .k = unit->gemm_k,
                                         .m = unit->gemm_m,
                                         .width = (uint16_t)w,
                                         .layer = unit->layer};
            const struct tun_fit *fit = &f->fits[fitted(f, &of)];
            double ns = tun_predict_ns(f, &of), error = fit->error;

            if (ns < 0 || (cell->source != TUN_UNKNOWN && cell->source != TUN_PREDICTED)) {
                continue;
            }
            if (w > 1) {
                error =
                    base_max(error, fit->has_wide ? fit->error_wide : f->fits[TUN_CONV].error_wide);
            }
            *cell = (struct tun_cell){ns, base_max(error, SIGMA_LEAST), TUN_PREDICTED};
            set++;
        }
    }
    return set;
}

void tun_gemm_of_conv(size_t out_h, size_t out_w, size_t kernel_h, size_t kernel_w, size_t in_ch,
                      size_t out_ch, double *ret_n, double *ret_k, double *ret_m)
{
    *ret_n = (double)out_h * (double)out_w;
    *ret_k = (double)kernel_h * (double)kernel_w * (double)in_ch;
    *ret_m = (double)out_ch;
}
