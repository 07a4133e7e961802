/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn of a decoder's result hides none of it; segments stand under their models. */
#include <string.h>

#include "ipc/show/canvas.h"
#include "ipc/show/draw_decoded.h"
#include "ipc/show/fold_segments.h"
#include "tests/harness.h"

#define SIDE 240u
#define GREY 90
#define ROWS 8u
#define OBJECTS ((size_t)ROWS * ROWS)
#define POINTS 5u

static uint8_t picture[SIDE * SIDE * 3];

static void draw(struct canvas *c, const struct piped_object *objects, size_t count,
                 const struct piped_point *points, size_t point_count)
{
    struct piped_decoded r = {.kind = "ssd",
                              .width = SIDE,
                              .height = SIDE,
                              .objects = objects,
                              .object_count = count,
                              .points = points,
                              .point_count = point_count};

    memset(picture, GREY, sizeof(picture));
    T_TRUE(canvas_init(c, picture, SIDE, SIDE, SIDE * 3, 3, false));
    shw_draw(c, &r);
}

static bool is_grey(const struct canvas *c, float x, float y)
{
    return c->rgb[((size_t)y * SIDE + (size_t)x) * 3] == GREY;
}

/* Return: the share of the object's pixels that are as they were. */
static double seen(const struct canvas *c, const struct piped_object *o)
{
    size_t same = 0;

    for (float y = o->y; y < o->y + o->height; y++) {
        for (float x = o->x; x < o->x + o->width; x++) {
            same += is_grey(c, x, y);
        }
    }
    return (double)same / (double)(o->width * o->height);
}

/* Labels of 60 pixels would cover the neighbours of faces of 16. */
TEST(labels_hide_no_faces_of_a_crowd)
{
    struct piped_object objects[OBJECTS];
    struct canvas c;

    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = (struct piped_object){.x = (float)(10 + i % ROWS * 28),
                                           .y = (float)(10 + i / ROWS * 28),
                                           .width = 16,
                                           .height = 16,
                                           .score = 0.9f,
                                           .number = 1,
                                           .label = "face"};
    }
    draw(&c, objects, OBJECTS, NULL, 0);
    for (size_t i = 0; i < OBJECTS; i++) {
        T_TRUE(seen(&c, &objects[i]) > 0.55); /* the box's lines, and a sixth for a label */
    }
    canvas_deinit(&c);
}

TEST(a_label_stands_above_its_box)
{
    struct piped_object one = {
        .x = 100, .y = 100, .width = 40, .height = 40, .score = 1, .number = 2, .label = "cat"};
    struct canvas c;

    draw(&c, &one, 1, NULL, 0);
    T_TRUE(!is_grey(&c, 100, 99) && !is_grey(&c, 100, 92));
    T_TRUE(is_grey(&c, 120, 120));
    canvas_deinit(&c);
    one.y = 0; /* there is no room above */
    draw(&c, &one, 1, NULL, 0);
    T_TRUE(!is_grey(&c, 100, 42) && is_grey(&c, 120, 20));
    canvas_deinit(&c);
}

TEST(points_of_a_small_face_leave_it_visible)
{
    struct piped_object one = {.x = 100,
                               .y = 100,
                               .width = 12,
                               .height = 12,
                               .score = 1,
                               .number = 2,
                               .point_count = POINTS};
    struct piped_point points[POINTS] = {
        {104, 104, 1}, {108, 104, 1}, {106, 106, 1}, {104, 109, 1}, {108, 109, 1}};
    struct canvas c;

    draw(&c, &one, 1, points, POINTS);
    T_TRUE(seen(&c, &one) > 0.5);
    T_TRUE(!is_grey(&c, 104, 104));
    canvas_deinit(&c);
}

static json_t *named(const char *name, bool segment)
{
    return segment ? json_pack("{s:s, s:{s:i}}", "name", name, "segment", "first_unit", 0)
                   : json_pack("{s:s, s:n, s:{s:s}}", "name", name, "segment", "route", "phase",
                               "ready");
}

/* One that a user serves is called MODEL#FIRST-LAST, and is a model of its own. */
TEST(segments_stand_under_their_models)
{
    json_t *models = json_array(), *own, *m;

    json_array_append_new(models, named("sq", false));
    json_array_append_new(models, named("sq-56eaa70f-b8fecf87#0-25", true));
    json_array_append_new(models, own = named("sq#3-4", true));
    json_array_append_new(models, named("sq-56eaa70f-b8fecf87#26-30", true));
    T_TRUE(shw_segment_of(json_array_get(models, 1), models) == json_array_get(models, 0));
    T_TRUE(!shw_segment_of(own, models) && !shw_segment_of(json_array_get(models, 0), models));
    shw_fold_segments(models);
    T_EQ(json_array_size(models), 2);
    T_TRUE(json_array_get(models, 1) == own);
    m = json_object_get(json_object_get(json_array_get(models, 0), "route"), "segments");
    T_EQ(json_array_size(m), 2);
    T_STR(json_string_value(json_object_get(json_array_get(m, 0), "name")),
          "sq-56eaa70f-b8fecf87#0-25");
    json_decref(models);
}

TEST_MAIN()
