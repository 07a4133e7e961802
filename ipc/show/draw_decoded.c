/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/show/draw_decoded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ipc/show/canvas.h"

#define LABELS_MAX 256u
#define OBJECTS_MAX 512u /* with labels: their places take time */
#define CORNER 6         /* a label may hide a sixth of an object */

/* Its points are corners of what was found. */
static bool has_corners(const struct piped_decoded *r)
{
    return strcmp(r->kind, "dbnet") == 0;
}

static uint32_t colour_of(const struct piped_object *o, size_t i)
{
    return canvas_colour(o->number >= 0 ? (size_t)o->number : i);
}

static bool is_object(const struct piped_decoded *r, unsigned class)
{
    for (size_t i = 0; i < r->object_count; i++) {
        if (r->objects[i].number == (int)class) {
            return true;
        }
    }
    return false;
}

static void draw_mask(struct canvas *c, const struct piped_decoded *r)
{
    const struct piped_mask *m = r->mask;
    double w = (double)m->width / m->columns, h = (double)m->height / m->rows;
    bool shown[256];

    for (unsigned k = 0; k < 256; k++) {
        shown[k] = is_object(r, k);
    }
    for (uint32_t y = 0; y < m->rows; y++) {
        for (uint32_t x = 0; x < m->columns; x++) {
            uint8_t class = m->classes[(size_t)y * m->columns + x];
            double left = (double)m->x + x * w, top = (double)m->y + y * h;

            if (shown[class]) {
                canvas_blend(c, left + 0.5, top + 0.5, left + w + 0.5, top + h + 0.5,
                             canvas_colour(class));
            }
        }
    }
}

static void draw_points(struct canvas *c, const struct piped_decoded *r,
                        const struct piped_object *o, uint32_t colour)
{
    for (uint32_t k = 0; k < o->point_count; k++) {
        const struct piped_point *p = &r->points[o->point_first + k];
        const struct piped_point *q = &r->points[o->point_first + (k + 1) % o->point_count];

        if (has_corners(r)) {
            canvas_line(c, p->x, p->y, q->x, q->y, colour);
        } else if (p->score > 0) {
            canvas_dot(c, p->x, p->y, fmin(o->width, o->height), colour);
        }
    }
}

static void draw_object(struct canvas *c, const struct piped_decoded *r, size_t i)
{
    const struct piped_object *o = &r->objects[i];

    if (!has_corners(r)) {
        canvas_box(c, o->x, o->y, o->width, o->height, colour_of(o, i));
    }
    draw_points(c, r, o, colour_of(o, i));
}

static void text_of(const struct piped_object *o, char *ret, size_t bytes)
{
    if (o->label || o->number < 0) {
        snprintf(ret, bytes, "%.200s%s%.0f %%", o->label ? o->label : "", o->label ? " " : "",
                 100 * (double)o->score);
    } else {
        snprintf(ret, bytes, "class %d %.0f %%", o->number, 100 * (double)o->score);
    }
}

/* ---- labels ---- */

struct area {
    double x1, y1, x2, y2;
};

static double common(const struct area *a, const struct area *b)
{
    double x = fmin(a->x2, b->x2) - fmax(a->x1, b->x1);
    double y = fmin(a->y2, b->y2) - fmax(a->y1, b->y1);

    return x > 0 && y > 0 ? x * y : 0;
}

static struct area area_of(const struct piped_object *o)
{
    return (struct area){o->x, o->y, o->x + o->width, o->y + o->height};
}

/* Would a label hide an object, or one of the labels so far? */
static bool hides(const struct piped_decoded *r, const struct area *label,
                  const struct area *labels, size_t count)
{
    for (size_t i = 0; i < r->object_count; i++) {
        struct area a = area_of(&r->objects[i]);

        if (common(&a, label) * CORNER > (a.x2 - a.x1) * (a.y2 - a.y1)) {
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (common(&labels[i], label) > 0) {
            return true;
        }
    }
    return false;
}

/* Above the box, below it, beside it, or within a large one: the first place that hides nothing.
 * Return: there is one. */
static bool find_place(const struct canvas *c, const struct piped_decoded *r, size_t own,
                       const char *text, const struct area *labels, size_t count, struct area *ret)
{
    struct area o = area_of(&r->objects[own]);
    double wide, high;

    canvas_text_size(c, text, &wide, &high);

    const double places[][2] = {
        {o.x1, o.y1 - high}, {o.x2 - wide, o.y1 - high}, {o.x1, o.y2}, {o.x2 - wide, o.y2},
        {o.x2, o.y1},        {o.x1 - wide, o.y1},        {o.x1, o.y1}, {o.x1, o.y2 - high}};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        double x = fmax(0, fmin(places[i][0], c->width - wide));
        double y = fmax(0, fmin(places[i][1], c->height - high));

        *ret = (struct area){x, y, x + wide, y + high};
        if (!hides(r, ret, labels, count)) {
            return true;
        }
    }
    return false;
}

/* The best ones come first. In a crowd, those for which there is no place have none. */
static void draw_labels(struct canvas *c, const struct piped_decoded *r)
{
    struct area labels[LABELS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < r->object_count && i < OBJECTS_MAX && count < LABELS_MAX; i++) {
        const struct piped_object *o = &r->objects[i];
        char text[300];

        text_of(o, text, sizeof(text));
        if (strcmp(r->kind, "classes") == 0) {
            canvas_text(c, 0, 9.0 * c->pen * (double)(i + 1), text, colour_of(o, i));
        } else if (!has_corners(r) && find_place(c, r, i, text, labels, count, &labels[count])) {
            canvas_text(c, labels[count].x1, labels[count].y2, text, colour_of(o, i));
            count++;
        }
    }
}

void shw_draw(struct canvas *c, const struct piped_decoded *r)
{
    bool classes = strcmp(r->kind, "classes") == 0;

    if (r->mask) {
        draw_mask(c, r);
    }
    for (size_t i = r->object_count; i-- > 0 && !classes;) { /* the best is on top */
        draw_object(c, r, i);
    }
    draw_labels(c, r);
    if (r->text) {
        canvas_text(c, 0, 0, r->text, canvas_colour(0));
    }
}
