/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/show/draw_decoded.h"

#include <stdio.h>
#include <string.h>

#include "ipc/show/canvas.h"

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
    bool corners = strcmp(r->kind, "dbnet") == 0;

    for (uint32_t k = 0; k < o->point_count; k++) {
        const struct piped_point *p = &r->points[o->point_first + k];
        const struct piped_point *q = &r->points[o->point_first + (k + 1) % o->point_count];

        if (corners) {
            canvas_line(c, p->x, p->y, q->x, q->y, colour);
        } else if (p->score > 0) {
            canvas_dot(c, p->x, p->y, colour);
        }
    }
}

static void draw_object(struct canvas *c, const struct piped_decoded *r, size_t i)
{
    const struct piped_object *o = &r->objects[i];
    bool corners = strcmp(r->kind, "dbnet") == 0, classes = strcmp(r->kind, "classes") == 0;
    uint32_t colour = colour_of(o, i);
    char text[300];

    if (o->label || o->number < 0) {
        snprintf(text, sizeof(text), "%.200s%s%.0f %%", o->label ? o->label : "",
                 o->label ? " " : "", 100 * (double)o->score);
    } else {
        snprintf(text, sizeof(text), "class %d %.0f %%", o->number, 100 * (double)o->score);
    }
    if (classes) {
        canvas_text(c, 0, 9.0 * c->pen * (double)(i + 1), text, colour);
        return;
    }
    if (!corners) {
        canvas_box(c, o->x, o->y, o->width, o->height, colour);
    }
    draw_points(c, r, o, colour);
    if (!corners) {
        canvas_text(c, o->x, o->y, text, colour);
    }
}

void shw_draw(struct canvas *c, const struct piped_decoded *r)
{
    if (r->mask) {
        draw_mask(c, r);
    }
    for (size_t i = r->object_count; i-- > 0;) { /* the best is on top */
        draw_object(c, r, i);
    }
    if (r->text) {
        canvas_text(c, 0, 0, r->text, canvas_colour(0));
    }
}
