/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn of a decoder's result hides none of it; segments stand under their models. */
#include <math.h>
#include <string.h>

#include "apps/show/canvas.h"
#include "apps/show/decoded.h"
#include "apps/show/fold_segments.h"
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

static struct piped_object face(size_t x, size_t y, unsigned width, unsigned height, double score)
{
    return (struct piped_object){.x = (float)x,
                                 .y = (float)y,
                                 .width = (float)width,
                                 .height = (float)height,
                                 .score = (float)score,
                                 .number = 1,
                                 .label = "face"};
}

/* Labels of 60 pixels would cover the neighbours of faces of 16. */
TEST(labels_hide_no_faces_of_a_crowd)
{
    struct piped_object objects[OBJECTS];
    struct canvas c;

    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = face(10 + i % ROWS * 28, 10 + i / ROWS * 28, 16, 16, 0.9f);
    }
    draw(&c, objects, OBJECTS, NULL, 0);
    for (size_t i = 0; i < OBJECTS; i++) {
        T_TRUE(seen(&c, &objects[i]) > 0.75); /* all but the box's lines */
    }
    canvas_deinit(&c);
}

/* Above and below are neighbours: the place beside the box hides nothing. */
TEST(a_label_takes_the_place_that_hides_least)
{
    struct piped_object objects[3];
    struct canvas c;

    for (size_t i = 0; i < 3; i++) {
        objects[i] = face(80, 70 + 35 * i, 40, 30, i == 1 ? 0.5 : 0.9);
    }
    draw(&c, objects, 3, NULL, 0);
    T_TRUE(!is_grey(&c, 122, 107)); /* right of the middle one */
    for (size_t i = 0; i < 3; i++) {
        T_TRUE(seen(&c, &objects[i]) > 0.77); /* all but the lines */
    }
    canvas_deinit(&c);
}

/* Between tall neighbours there is room for a score of two digits. */
TEST(a_label_may_be_brief)
{
    static const struct piped_object objects[] = {
        {.x = 40, .y = 90, .width = 56, .height = 40, .score = 0.9f, .number = 1, .label = "a"},
        {.x = 120, .y = 90, .width = 56, .height = 40, .score = 0.9f, .number = 1, .label = "b"},
        {.x = 100,
         .y = 100,
         .width = 16,
         .height = 16,
         .score = 0.8f,
         .number = 1,
         .label = "face"}};
    struct canvas c;

    draw(&c, objects, 3, NULL, 0);
    T_TRUE(!is_grey(&c, 104, 96)); /* above it */
    T_TRUE(is_grey(&c, 104, 122)); /* not below it, too */
    T_TRUE(is_grey(&c, 88, 96) && is_grey(&c, 130, 96));
    canvas_deinit(&c);
}

/* Boxes side by side over all of the picture leave no place: what they show matters more. */
TEST(no_place_no_label)
{
    struct piped_object objects[OBJECTS];
    struct canvas c;

    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = face(i % ROWS * 30, i / ROWS * 30, 30, 30, 0.9f);
    }
    draw(&c, objects, OBJECTS, NULL, 0);
    for (size_t i = 0; i < OBJECTS; i++) {
        T_TRUE(seen(&c, &objects[i]) > 0.65);
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

/* @of: NULL: a whole model, with a route */
static json_t *named(const char *name, const char *of, const char *board)
{
    return of ? json_pack("{s:s, s:{s:s, s:s, s:i, s:i}}", "name", name, "segment", "of", of,
                          "board", board, "first_unit", 10, "last_unit", 18)
              : json_pack("{s:s, s:n, s:{s:s}}", "name", name, "segment", "route", "phase",
                          "ready");
}

/* One that a user serves is called MODEL#FIRST-LAST, and is a model of its own. */
TEST(what_json_has_no_form_for_is_null)
{
    const double none[] = {INFINITY, -INFINITY, (double)NAN, 1e39};

    for (size_t i = 0; i < base_array_count(none); i++) {
        json_t *v = shw_number(none[i]);

        T_TRUE(json_is_null(v));
        json_decref(v);
    }
}

TEST(segments_stand_under_their_models)
{
    json_t *models = json_array(), *status = json_pack("{s:o}", "models", models), *own, *m;
    char text[SHW_SEGMENT_BYTES];

    json_array_append_new(models, named("sq", NULL, NULL));
    json_array_append_new(models, named("sq-56eaa70f-b8fecf87#0-25", "sq", "here"));
    json_array_append_new(
        models, own = json_pack("{s:s, s:{s:i}}", "name", "sq#3-4", "segment", "first_unit", 3));
    json_array_append_new(models, named("sq-56eaa70f-b8fecf87#26-30", "sq", "here"));
    json_array_append_new(models, named("sq-0123abcd#10-18", "sq", "head"));
    json_array_append_new(models, named("det-89abcdef#10-18", "det", "here"));
    T_TRUE(shw_is_segment(json_array_get(models, 1)) && !shw_is_segment(own));
    shw_fold_segments(status);
    T_EQ(json_array_size(models), 2);
    T_TRUE(json_array_get(models, 1) == own);
    m = json_object_get(json_object_get(json_array_get(models, 0), "route"), "segments");
    T_EQ(json_array_size(m), 2);
    T_STR(json_string_value(json_object_get(json_array_get(m, 0), "name")),
          "sq-56eaa70f-b8fecf87#0-25");
    m = json_object_get(status, "segments");
    T_EQ(json_array_size(m), 2);
    shw_segment_text(json_array_get(m, 0), text);
    T_STR(text, "sq, units 10-18 for board head");
    shw_segment_text(json_array_get(m, 1), text); /* its model is gone here */
    T_STR(text, "det, units 10-18 for this board");
    json_decref(status);
}

TEST_MAIN()
