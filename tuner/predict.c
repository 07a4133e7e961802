/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/predict.h"

#include "base/base.h"

#define TERMS 8u
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
    return tun_positive(b->n) && tun_positive(b->k) && tun_positive(b->m) && tun_positive(b->ns) &&
           b->width >= 1;
}

static bool is_fc(double n)
{
    return n == 1;
}

/* The terms of eq. 5. With N = 1 only K, M, KM and the constant are different from each other. */
static void terms_of(double n, double k, double m, double ret[TERMS])
{
    const double conv[TERMS] = {n, k, m, n * k, k * m, n * m, n * m * k, 1};
    const double fc[TERMS] = {0, k, m, 0, k * m, 0, 0, 1};

    memcpy(ret, is_fc(n) ? fc : conv, sizeof(conv));
}

/* What eq. 8 adds to T / H, for a1, a2, a3. */
static void multi_terms_of(double n, size_t width, double ret[TERMS])
{
    memset(ret, 0, TERMS * sizeof(*ret));
    ret[0] = -1.0 / (double)width;
    ret[1] = n / (TUN_TILE * (double)width);
    ret[2] = 1;
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

/* What is fitted: eq. 5 on the rows of one core with N = 1 (FC) or without (CONV); eq. 8 on the
 * rows of several cores: of convolutions, since a product with N = 1 has no rows to share out; of
 * products alone when there is nothing else. */
enum part { CONV, FC, MULTI };

static bool is_of(const struct tun_predictor *p, enum part part, const struct tun_bench *b)
{
    return usable(b) && (b->width > 1) == (part == MULTI) &&
           is_fc(b->n) == (part == MULTI ? !p->has_conv : part == FC);
}

/* @ret: the terms of a row. Return: its right side. */
static double row_of(const struct tun_predictor *p, enum part part, const struct tun_bench *b,
                     double ret[TERMS])
{
    if (part != MULTI) {
        terms_of(b->n, b->k, b->m, ret);
        return b->ns;
    }
    multi_terms_of(b->n, b->width, ret);
    return b->ns - tun_predict_ns(p, b->n, b->k, b->m, 1) / b->width;
}

/* Sets a part of the predictor. @least: rows that it takes. */
static void fit_part(const struct tun_bench *benches, size_t count, enum part part, size_t least,
                     struct tun_predictor *p)
{
    bool *has[] = {&p->has_conv, &p->has_fc, &p->has_alpha};
    double *ret[] = {p->conv, p->fc, p->alpha}, row[TERMS], error = 0;
    double *errors[] = {&p->error_conv, &p->error_fc, &p->error_multi};
    struct fit f = {.terms = part == MULTI ? 3 : TERMS};
    struct tun_predictor known = *p;
    size_t rows = 0;

    for (size_t i = 0; i < count; i++) {
        if (is_of(&known, part, &benches[i])) {
            row_of(&known, part, &benches[i], row);
            fit_measure(&f, row, 1 / benches[i].ns);
            rows++;
        }
    }
    if (rows < least) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_of(&known, part, &benches[i])) {
            double right = row_of(&known, part, &benches[i], row);

            fit_add(&f, row, right, 1 / benches[i].ns);
        }
    }
    fit_solve(&f, ret[part]);
    *has[part] = true;
    for (size_t i = 0; i < count; i++) {
        const struct tun_bench *b = &benches[i];

        if (is_of(&known, part, b)) {
            error += fabs(tun_predict_ns(p, b->n, b->k, b->m, b->width) / b->ns - 1);
        }
    }
    *errors[part] = error / (double)rows;
}

int tun_predictor_fit(const struct tun_bench *benches, size_t count, struct tun_predictor *ret)
{
    struct tun_predictor p = {0};

    fit_part(benches, count, CONV, TERMS, &p);
    fit_part(benches, count, FC, 4, &p);
    if (!p.has_conv && !p.has_fc) {
        return -EINVAL;
    }
    fit_part(benches, count, MULTI, 3, &p);
    *ret = p;
    return 0;
}

double tun_predict_ns(const struct tun_predictor *f, double n, double k, double m, size_t width)
{
    double row[TERMS], single, multi;

    if (!tun_positive(n) || !tun_positive(k) || !tun_positive(m) || width == 0 ||
        !(is_fc(n) ? f->has_fc : f->has_conv) || (width > 1 && !f->has_alpha)) {
        return -1;
    }
    terms_of(n, k, m, row);
    single = base_max(1.0, dot(row, is_fc(n) ? f->fc : f->conv, TERMS));
    if (width == 1) {
        return single;
    }
    multi_terms_of(n, width, row);
    multi = single / (double)width + dot(row, f->alpha, 3);
    return base_max(1.0, base_max(multi, single / (double)width / SUPERLINEAR));
}

size_t tun_predict_costs(struct tun_problem *p, size_t ep, const struct tun_predictor *f)
{
    size_t set = 0;

    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        for (size_t u = 0; u < p->unit_count; u++) {
            struct tun_cell *cell = tun_cell_at(&p->costs, ep, w, u);
            const struct tun_unit *unit = &p->units[u];
            double ns = tun_predict_ns(f, unit->gemm_n, unit->gemm_k, unit->gemm_m, w);
            double error = is_fc(unit->gemm_n) ? f->error_fc : f->error_conv;

            if (ns < 0 || (cell->source != TUN_UNKNOWN && cell->source != TUN_PREDICTED)) {
                continue;
            }
            error = w > 1 ? base_max(error, f->error_multi) : error;
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
