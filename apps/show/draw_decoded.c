/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder found, drawn. */
#include <math.h>

#include "apps/show/canvas.h"
#include "apps/show/decoded.h"

#define LABELS_MAX 256u
#define OBJECTS_MAX 512u /* with labels: their places take time */
/* A label may hide a sixth of its own object, but hardly more than the line of another one. */
#define OWN 6.0
#define OTHERS 32.0

/* A result on a canvas, whose picture may have been scaled since. */
struct drawing {
    struct canvas *c;
    const struct piped_decoded *r;
    double across, down; /* pixels of the canvas for one of the result */
};

struct area {
    double x1, y1, x2, y2;
};

static struct area area_of(const struct drawing *g, size_t i)
{
    const struct piped_object *o = &g->r->objects[i];

    return (struct area){o->x * g->across, o->y * g->down,
                         ((double)o->x + (double)o->width) * g->across,
                         ((double)o->y + (double)o->height) * g->down};
}

/* Its points are corners of what was found. */
static bool has_corners(const struct piped_decoded *r)
{
    return strcmp(r->kind, "dbnet") == 0;
}

static uint32_t colour_of(const struct piped_object *o, size_t i)
{
    return canvas_colour(o->number >= 0 ? (size_t)o->number : i);
}

static void draw_mask(const struct drawing *g)
{
    const struct piped_decoded *r = g->r;
    const struct piped_mask *m = r->mask;
    double w = (double)m->width * g->across / m->columns;
    double h = (double)m->height * g->down / m->rows;
    bool shown[256] = {false};

    for (size_t i = 0; i < r->object_count; i++) {
        if (r->objects[i].number >= 0 && r->objects[i].number < 256) {
            shown[r->objects[i].number] = true;
        }
    }
    for (uint32_t y = 0; y < m->rows; y++) {
        for (uint32_t x = 0; x < m->columns; x++) {
            uint8_t class = m->classes[(size_t)y * m->columns + x];
            double left = (double)m->x * g->across + x * w, top = (double)m->y * g->down + y * h;

            if (shown[class]) {
                canvas_blend(g->c, left + 0.5, top + 0.5, left + w + 0.5, top + h + 0.5,
                             canvas_colour(class));
            }
        }
    }
}

static void draw_points(const struct drawing *g, size_t i)
{
    const struct piped_object *o = &g->r->objects[i];
    const struct area a = area_of(g, i);
    uint32_t colour = colour_of(o, i);

    for (uint32_t k = 0; k < o->point_count; k++) {
        const struct piped_point *p = &g->r->points[o->point_first + k];
        const struct piped_point *q = &g->r->points[o->point_first + (k + 1) % o->point_count];
        double x = p->x * g->across, y = p->y * g->down;

        if (has_corners(g->r)) {
            canvas_line(g->c, x, y, q->x * g->across, q->y * g->down, colour);
        } else if (p->score > 0) {
            canvas_dot(g->c, x, y, fmin(a.x2 - a.x1, a.y2 - a.y1), colour);
        }
    }
}

static void draw_object(const struct drawing *g, size_t i)
{
    const struct area a = area_of(g, i);

    if (!has_corners(g->r)) {
        canvas_box(g->c, a.x1, a.y1, a.x2 - a.x1, a.y2 - a.y1, colour_of(&g->r->objects[i], i));
    }
    draw_points(g, i);
}

/* @brief: the score alone, for which a crowd may have room. */
static void text_of(const struct piped_object *o, bool brief, char *ret, size_t bytes)
{
    double percent = 100 * (double)o->score;

    if (brief) {
        snprintf(ret, bytes, "%.0f", percent);
    } else if (o->label || o->number < 0) {
        snprintf(ret, bytes, "%.200s%s%.0f %%", o->label ? o->label : "", o->label ? " " : "",
                 percent);
    } else {
        snprintf(ret, bytes, "class %d %.0f %%", o->number, percent);
    }
}

/* ---- labels ---- */

static double common(const struct area *a, const struct area *b)
{
    double x = fmin(a->x2, b->x2) - fmax(a->x1, b->x1);
    double y = fmin(a->y2, b->y2) - fmax(a->y1, b->y1);

    return x > 0 && y > 0 ? x * y : 0;
}

/* Labels so far. */
struct labels {
    struct area at[LABELS_MAX];
    size_t count;
};

/* Return: how much a label of object @own would hide of what it hides most of; above 1: too much,
 * and how much is not told. */
static double hidden(const struct drawing *g, size_t own, const struct area *label,
                     const struct labels *so_far)
{
    double most = 0;

    for (size_t i = 0; i < g->r->object_count && most <= 1; i++) {
        struct area a = area_of(g, i);
        double of = (a.x2 - a.x1) * (a.y2 - a.y1), hides = common(&a, label);

        most = hides > 0 ? fmax(most, hides / of * (i == own ? OWN : OTHERS)) : most;
    }
    for (size_t i = 0; i < so_far->count && most <= 1; i++) {
        most = common(&so_far->at[i], label) > 0 ? INFINITY : most;
    }
    return most;
}

/* Above the box, below it, beside it, or within a large one: the first place of those that hide
 * least. Return: it hides little. */
static bool find_place(const struct drawing *g, size_t own, const char *text,
                       const struct labels *so_far, struct area *ret)
{
    struct area o = area_of(g, own);
    double wide, high, least = INFINITY;

    canvas_text_size(g->c, text, &wide, &high);

    const double middle = (o.x1 + o.x2 - wide) / 2;
    const double places[][2] = {{o.x1, o.y1 - high},   {o.x2 - wide, o.y1 - high},
                                {middle, o.y1 - high}, {o.x1, o.y2},
                                {o.x2 - wide, o.y2},   {middle, o.y2},
                                {o.x2, o.y1},          {o.x1 - wide, o.y1},
                                {o.x1, o.y1},          {o.x1, o.y2 - high}};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        double x = fmax(0, fmin(places[i][0], g->c->width - wide));
        double y = fmax(0, fmin(places[i][1], g->c->height - high));
        struct area label = {x, y, x + wide, y + high};
        double hides = hidden(g, own, &label, so_far);

        if (hides < least) {
            least = hides;
            *ret = label;
        }
    }
    return least <= 1;
}

/* In a crowd, an object has a brief label, or none if there is no place for it either. */
static void draw_label(const struct drawing *g, size_t i, struct labels *so_far)
{
    const struct piped_object *o = &g->r->objects[i];

    for (int brief = 0; brief <= 1; brief++) {
        struct area *at = &so_far->at[so_far->count];
        char text[300];

        text_of(o, brief, text, sizeof(text));
        if (find_place(g, i, text, so_far, at)) {
            canvas_text(g->c, at->x1, at->y2, text, colour_of(o, i));
            so_far->count++;
            return;
        }
    }
}

static void draw_classes(struct canvas *c, const struct piped_decoded *r)
{
    for (size_t i = 0; i < r->object_count && i < LABELS_MAX; i++) {
        char text[300];

        text_of(&r->objects[i], false, text, sizeof(text));
        canvas_text(c, 0, 9.0 * c->pen * (double)(i + 1), text, colour_of(&r->objects[i], i));
    }
}

/* The best ones come first. */
static void draw_labels(const struct drawing *g)
{
    struct labels so_far = {.count = 0};

    for (size_t i = 0; i < g->r->object_count && i < OBJECTS_MAX && so_far.count < LABELS_MAX;
         i++) {
        draw_label(g, i, &so_far);
    }
}

void shw_draw(struct canvas *c, const struct piped_decoded *r)
{
    const struct drawing g = {c, r, r->width ? (double)c->width / r->width : 1,
                              r->height ? (double)c->height / r->height : 1};

    if (r->mask) {
        draw_mask(&g);
    }
    if (strcmp(r->kind, "classes") == 0) {
        draw_classes(c, r);
    } else {
        for (size_t i = r->object_count; i-- > 0;) { /* the best is on top */
            draw_object(&g, i);
        }
        if (!has_corners(r)) {
            draw_labels(&g);
        }
    }
    if (r->text) {
        canvas_text(c, 0, 0, r->text, canvas_colour(0));
    }
}
