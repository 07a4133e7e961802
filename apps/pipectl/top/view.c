/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: lays the sections out on the screen. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

#define SECTION_ROWS 400u /* of one section, before it is cut */
#define SECTIONS_MAX (5 + 3 * TOP_MODELS_MAX)
#define LEAST_ROWS 3u /* that a section keeps when there is not room for all */

typedef void draw_section(const struct top_view *v, struct top_screen *s, const json_t *model);

struct section {
    draw_section *draw;
    const json_t *model;
    size_t rows, given;
};

static size_t model_count(const struct top_view *v)
{
    return json_array_size(json_object_get(v->top->status, "models"));
}

static void draw_header(const struct top_view *v, struct top_screen *s)
{
    const json_t *status = v->top->status;
    double up = ctl_real(status, "uptime_s");
    const char *state = ctl_text(status, "state");

    s->row = s->column = 0;
    if (status) {
        top_put(s, TOP_BOLD, "piped %s", ctl_text(status, "version"));
    } else {
        top_put(s, TOP_BOLD, "piped");
    }
    if (status && !v->notice) {
        top_put(s, strcmp(state, "degraded") == 0 ? TOP_BAD : TOP_GOOD, "  %s", state);
        top_put(s, TOP_PLAIN, "  up %.0f h %02.0f min %02.0f s", floor(up / 3600),
                fmod(floor(up / 60), 60), fmod(floor(up), 60));
    }
    if (v->notice) {
        top_put(s, TOP_BAD, "  %s", v->notice);
    }
}

static void put_key(struct top_screen *s, const char *text)
{
    if (s->column + 2 + strlen(text) <= s->columns) {
        top_put(s, TOP_TITLE, "%s%s", s->column > 0 ? "  " : "", text);
    }
}

static void draw_keys(const struct top_view *v, struct top_screen *s)
{
    static const char *const sorts[TOP_SORTS] = {"s sort: order", "s sort: load", "s sort: time"};

    s->row = s->rows - 1;
    s->column = 0;
    put_key(s, "q quit");
    put_key(s, "h help");
    put_key(s, "space pause");
    if (model_count(v) > 1) {
        put_key(s, "n p model");
    }
    put_key(s, "u units");
    put_key(s, "d decisions");
    put_key(s, sorts[v->sort]);
}

static void draw_help(const struct top_view *v, struct top_screen *s, const json_t *model)
{
    static const char *const lines[] = {
        "n, right, tab    the next model            p, left    the previous one",
        "s                sort by order, load or time",
        "u                time of each unit         d          last 20 decisions",
        "up, down, page up, page down               scroll",
        "space            pause, and go on          h, ?       this page",
        "m, escape        back to the model         q          quit",
        "",
        "wished: frames/s it is to have; cores: its part of their time, by one plan for all",
        "busy: share of the last second in which a stage's teams held frames",
        "queue: frames that wait for the stage",
        "service, expected: a frame in a stage, as measured and as planned; off: by",
        "  how much it takes longer",
        "Mbit/s, message us: what a link takes is message us + bytes x 8 / Mbit/s",
        "limited: the clock may not reach its maximum now",
        "pipectl(1) and docs/top.md say more.",
    };

    for (size_t i = 0; i < base_array_count(lines); i++) {
        top_put(s, TOP_PLAIN, "%s", lines[i]);
        top_line(s);
    }
}

static void add(struct section *list, size_t *count, draw_section *draw, const json_t *model)
{
    if (*count < SECTIONS_MAX) {
        list[(*count)++] = (struct section){.draw = draw, .model = model};
    }
}

static void add_model(struct section *list, size_t *count, const json_t *model)
{
    add(list, count, top_draw_model, model);
    add(list, count, top_draw_stages, model);
    add(list, count, top_draw_route, model);
}

static size_t sections_of(const struct top_view *v, struct section *ret)
{
    const json_t *model = v->model ? top_status_of(v->top, v->model) : NULL;
    size_t count = 0;

    if (v->page == TOP_PAGE_HELP) {
        add(ret, &count, draw_help, NULL);
    } else if (!v->top->status) {
        return 0;
    } else if (v->page == TOP_PAGE_DECISIONS) {
        add(ret, &count, top_draw_decisions, NULL);
    } else if (v->page == TOP_PAGE_UNITS && model) {
        add(ret, &count, top_draw_units, model);
    } else {
        json_text_each(json_object_get(v->top->status, "models"), i, m) {
            if (v->all) {
                add_model(ret, &count, m);
            }
        }
        if (!v->all && model_count(v) > 1) {
            add(ret, &count, top_draw_models, model);
        }
        if (!v->all && model) {
            add_model(ret, &count, model);
        }
        add(ret, &count, top_draw_mix, NULL);
        add(ret, &count, top_draw_boards, NULL);
        add(ret, &count, top_draw_clocks, NULL);
        add(ret, &count, top_draw_machine, NULL);
        add(ret, &count, top_draw_decisions, NULL);
    }
    return count;
}

static size_t given_rows(const struct section *list, size_t count, bool blanks)
{
    size_t all = 0;

    for (size_t i = 0; i < count; i++) {
        all += list[i].given + (blanks && list[i].given > 0 && all > 0);
    }
    return all;
}

/* Takes rows from the longest sections until all fit, but leaves LEAST_ROWS of each. The model and
 * its route stay whole. */
static void share_rows(struct section *list, size_t count, size_t rows)
{
    while (count > 1 && given_rows(list, count, false) > rows) {
        struct section *longest = NULL;

        for (size_t i = 0; i < count; i++) {
            if (list[i].draw != top_draw_model && list[i].draw != top_draw_route &&
                list[i].given > LEAST_ROWS && (!longest || list[i].given >= longest->given)) {
                longest = &list[i];
            }
        }
        if (!longest) {
            return;
        }
        longest->given--;
    }
}

/* Draws a section on a screen of its own, and counts its rows. */
static void draw_apart(const struct top_view *v, struct section *section, struct top_screen *apart)
{
    top_screen_clear(apart);
    section->draw(v, apart, section->model);
    section->rows = base_min(apart->row, apart->rows);
}

static void put_more(struct top_screen *s, size_t row, size_t rows, const char *how)
{
    s->row = row;
    s->column = 0;
    top_put_field(s, TOP_FAINT, "", s->columns, false);
    s->column = 0;
    top_put(s, TOP_FAINT, "  %zu more row%s%s", rows, base_plural(rows), how);
}

/* Draws all sections below each other on @body. Return: its rows. */
static size_t draw_body(const struct top_view *v, struct section *list, size_t count, bool blanks,
                        struct top_screen *apart, struct top_screen *body)
{
    size_t row = 0;

    for (size_t i = 0; i < count; i++) {
        if (list[i].given == 0) {
            continue;
        }
        row += blanks && row > 0;
        draw_apart(v, &list[i], apart);
        top_screen_copy(body, row, apart, 0, list[i].given);
        row += list[i].given;
        if (list[i].given < list[i].rows) {
            put_more(body, row - 1, list[i].rows - list[i].given + 1, "");
        }
    }
    return row;
}

/* Draws the sections below the header, @rows of them from row v->scroll on. */
static void draw_sections(struct top_view *v, struct top_screen *s, size_t rows)
{
    struct section list[SECTIONS_MAX];
    size_t count = sections_of(v, list), used;
    struct top_screen apart = TOP_SCREEN_NULL, body = TOP_SCREEN_NULL;

    if (top_screen_init(&apart, SECTION_ROWS, s->columns, s->ascii) == 0) {
        for (size_t i = 0; i < count; i++) {
            draw_apart(v, &list[i], &apart);
            list[i].given = list[i].rows;
        }
        share_rows(list, count, rows);
        used = given_rows(list, count, true);
        if (top_screen_init(&body, used, s->columns, s->ascii) == 0) {
            used = draw_body(v, list, count, used <= rows, &apart, &body);
            v->scroll = base_min(v->scroll, used - base_min(used, rows));
            top_screen_copy(s, 1, &body, v->scroll, base_min(rows, used - v->scroll));
            if (rows > 0 && v->scroll + rows < used) {
                put_more(s, rows, used - v->scroll - rows + 1, ": down");
            }
        }
    }
    top_screen_deinit(&body);
    top_screen_deinit(&apart);
}

void top_draw(struct top_view *v, struct top_screen *s)
{
    top_screen_clear(s);
    if (s->rows < 2) {
        v->scroll = 0;
        return;
    }
    draw_header(v, s);
    if (v->top->status && model_count(v) == 0 && v->page == TOP_PAGE_MODEL) {
        s->row = 2;
        s->column = 0;
        top_put(s, TOP_PLAIN, "no model is served");
    }
    draw_sections(v, s, s->rows - (v->all ? 1 : 2));
    if (!v->all) {
        draw_keys(v, s);
    }
}
