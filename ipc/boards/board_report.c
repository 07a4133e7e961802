/* SPDX-License-Identifier: Apache-2.0 */
/* The report of piped-link to piped. */

#include "base/base.h"
#include "ipc/boards/board_json.h"
#include "ipc/boards/board_state.h"

#define FRAMES_MAX ((json_int_t)1 << 62)
#define NS_MAX 1e15

static const char *const phases[] = {
    [BRD_PREPARING] = "preparing", [BRD_READY] = "ready", [BRD_FAILED] = "failed"};

const char *brd_phase_name(enum brd_route_phase phase)
{
    return phases[phase];
}

static json_t *route_state_json(const struct brd_route_state *r)
{
    json_t *ns = json_array();

    for (size_t i = 0; i < BRD_HOPS_MAX; i++) {
        json_array_append_new(ns, json_real(r->service_ns[i]));
    }
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
                     "model", r->model, "number", (json_int_t)r->number, "phase", phases[r->phase],
                     "why", r->why, "board", r->board, "to", r->to, "pictures", r->pictures,
                     "frames", (json_int_t)r->frames, "window", (json_int_t)r->window, "answered",
                     (json_int_t)r->answered, "resent", (json_int_t)r->resent, "late",
                     (json_int_t)r->late, "dropped", (json_int_t)r->dropped, "service_ns", ns);
}

json_t *brd_report_all_json(const struct brd_link_report_all *r)
{
    json_t *boards = json_array(), *routes = json_array();

    for (size_t i = 0; i < r->board_count; i++) {
        json_t *v = brd_state_json(&r->board[i]);

        json_object_set_new(v, "name", json_string(r->board[i].name));
        json_object_set_new(v, "up", json_boolean(r->board[i].up));
        json_array_append_new(boards, v);
    }
    for (size_t i = 0; i < r->route_count; i++) {
        json_array_append_new(routes, route_state_json(&r->route[i]));
    }
    return json_pack("{s:o, s:o, s:o}", "self", brd_state_json(&r->self), "boards", boards,
                     "routes", routes);
}

static bool read_phase(const json_t *j, enum brd_route_phase *ret)
{
    const char *text = json_string_value(json_object_get(j, "phase"));

    for (size_t i = 0; text && i < base_array_count(phases); i++) {
        if (strcmp(phases[i], text) == 0) {
            *ret = (enum brd_route_phase)i;
            return true;
        }
    }
    return false;
}

static bool read_service(const json_t *j, double ret[BRD_HOPS_MAX])
{
    const json_t *list, *v;
    size_t i;

    if (!brd_get_list(j, "service_ns", BRD_HOPS_MAX, &list)) {
        return false;
    }
    json_array_foreach(list, i, v)
    {
        double x = json_number_value(v);

        ret[i] = isfinite(x) && x > 0 && x <= NS_MAX ? x : 0;
    }
    return true;
}

static bool read_route_state(const json_t *j, struct brd_route_state *ret)
{
    json_int_t number, answered, resent, late, dropped = 0;
    double frames, window;

    if (!brd_get_text(j, "model", ret->model, sizeof(ret->model)) ||
        !brd_get_count(j, "number", 0, UINT32_MAX, &number) || !read_phase(j, &ret->phase) ||
        !brd_get_optional_text(j, "why", ret->why, sizeof(ret->why)) ||
        !brd_get_print(j, "board", true, ret->board) || !brd_get_print(j, "to", true, ret->to) ||
        !brd_get_number(j, "frames", UINT32_MAX, &frames) ||
        !brd_get_number(j, "window", UINT32_MAX, &window) ||
        !brd_get_count(j, "answered", 0, FRAMES_MAX, &answered) ||
        !brd_get_count(j, "resent", 0, FRAMES_MAX, &resent) ||
        !brd_get_count(j, "late", 0, FRAMES_MAX, &late) ||
        (json_object_get(j, "dropped") && !brd_get_count(j, "dropped", 0, FRAMES_MAX, &dropped)) ||
        !read_service(j, ret->service_ns)) {
        return false;
    }
    ret->number = (uint32_t)number;
    ret->frames = (uint32_t)frames;
    ret->pictures = json_is_true(json_object_get(j, "pictures"));
    ret->window = (uint32_t)window;
    ret->answered = (uint64_t)answered;
    ret->resent = (uint64_t)resent;
    ret->late = (uint64_t)late;
    ret->dropped = (uint64_t)dropped;
    return true;
}

static int read_board(const json_t *j, struct brd_state *ret)
{
    char name[BRD_NAME_BYTES];
    int rc = brd_get_text(j, "name", name, sizeof(name)) ? brd_state_read(j, ret) : -EBADMSG;

    if (rc == 0 && !*ret->print) {
        brd_state_deinit(ret);
        rc = -EBADMSG;
    }
    if (rc == 0) {
        memcpy(ret->name, name, sizeof(name));
        ret->up = json_is_true(json_object_get(j, "up"));
    }
    return rc;
}

static int read_boards(const json_t *list, struct brd_link_report_all *ret)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        int rc = read_board(v, &ret->board[ret->board_count]);

        if (rc) {
            return rc;
        }
        ret->board_count++;
    }
    return 0;
}

static int read_routes(const json_t *list, struct brd_link_report_all *ret)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (!read_route_state(v, &ret->route[ret->route_count++])) {
            return -EBADMSG;
        }
    }
    return 0;
}

int brd_report_all_read(const json_t *j, struct brd_link_report_all *ret)
{
    const json_t *boards, *routes;
    int rc = -EBADMSG;

    *ret = (struct brd_link_report_all){0};
    if (json_is_object(j) && brd_get_list(j, "boards", BRD_MAX, &boards) &&
        brd_get_list(j, "routes", BRD_ROUTES_MAX, &routes)) {
        rc = brd_state_read(json_object_get(j, "self"), &ret->self);
        rc = rc ? rc : read_boards(boards, ret);
        rc = rc ? rc : read_routes(routes, ret);
    }
    if (rc) {
        brd_report_all_deinit(ret);
    }
    return rc;
}

void brd_report_all_deinit(struct brd_link_report_all *r)
{
    brd_state_deinit(&r->self);
    for (size_t i = 0; i < r->board_count; i++) {
        brd_state_deinit(&r->board[i]);
    }
    *r = (struct brd_link_report_all){0};
}
