/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/top/view.h - draws what pipectl top knows on a screen. Pure. */
#pragma once

#include "apps/pipectl/top/model.h"
#include "apps/pipectl/top/screen.h"

enum top_page { TOP_PAGE_MODEL, TOP_PAGE_UNITS, TOP_PAGE_DECISIONS, TOP_PAGE_HELP };

struct top_view {
    const struct top *top;
    const json_t *events, *units, *explanation; /* replies' fields; NULL: not known */
    const char *model;                          /* the one that is shown; NULL: none */
    const char *notice;                         /* instead of the daemon's state; NULL: none */
    enum top_page page;
    enum top_sort sort;
    bool all;      /* every model, and no keys: for --once */
    size_t scroll; /* rows; top_draw() lowers it to what makes sense */
    uint64_t now_ns;
};

/** top_draw() - draws all of @s anew. */
void top_draw(struct top_view *v, struct top_screen *s);

/* Sections, drawn from where @s is; each row ends with top_line(). @model: its status. */

/* view_model.c */
void top_draw_model(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_models(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_stages(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_units(const struct top_view *v, struct top_screen *s, const json_t *model);
/* view_boards.c */
void top_draw_route(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_boards(const struct top_view *v, struct top_screen *s, const json_t *model);
/* view_machine.c */
void top_draw_clocks(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_machine(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_decisions(const struct top_view *v, struct top_screen *s, const json_t *model);

/** top_look_of_off() - bad from 0.5 on, warn from 0.2 on; NAN: plain. */
enum top_look top_look_of_off(double off);
