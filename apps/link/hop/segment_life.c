/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: how a segment gets to be served by the daemon here, and how that ends. */
#include "apps/link/hop/hop_private.h"
#include "apps/link/route/route.h"
#include "base/json_text.h"

#define DAEMON_NS (2 * BASE_NS_PER_S) /* how long to look for the daemon */

void segment_fail(struct segment *s, int status, const char *why)
{
    if (s->phase == SEGMENT_FAILED) {
        return;
    }
    s->phase = SEGMENT_FAILED;
    s->status = status;
    snprintf(s->why, sizeof(s->why), "%s", why);
    link_blame(s->link, s->head);
    link_log("%s does not serve: %s", s->name, s->why);
    link_blame(s->link, LINK_NOBODY);
    s->link->segments->changed(s->link, s);
}

static void open_segment(struct segment *s)
{
    int rc = segment_open(s->link->frames_path, s->name, PIXFMT_TENSOR, &s->lane[0].opening);

    s->phase = SEGMENT_LOADING;
    s->begun_ns = base_now_ns();
    if (rc < 0) {
        segment_fail(s, PIPED_RESOURCE_EXHAUSTED, strerror(-rc));
    }
}

void segment_opened(struct segment *s)
{
    struct segment_opened r;

    if (!segment_open_take(&s->lane[0], &r)) {
        return;
    }
    if (r.rc < 0) {
        segment_fail(s, r.rc == -ENOENT && r.reached ? PIPED_NOT_FOUND : PIPED_UNAVAILABLE, r.why);
        return;
    }
    s->phase = SEGMENT_READY;
    link_blame(s->link, s->head);
    link_log("serves %s for %s", s->name, link_name(s->link, s->head));
    link_blame(s->link, LINK_NOBODY);
    s->link->segments->changed(s->link, s);
}

static void read_border(struct segment *s, const json_t *models)
{
    const json_t *cut = json_object_get(json_text_find(models, "name", s->name), "segment");
    const char *front = json_string_value(json_object_get(cut, "front"));
    const char *back = json_string_value(json_object_get(cut, "back"));
    char text[BRD_KEY_TEXT_BYTES];

    if (front && back) {
        brd_border_text(front, back, text);
        brd_key_from_text(text, s->border);
    }
}

static void listed(void *arg, const char *error, const json_t *parameters)
{
    struct segment *s = arg;

    s->waits = false;
    if (s->phase == SEGMENT_FAILED) {
        return;
    }
    read_border(s, error ? NULL : json_object_get(parameters, "models"));
    open_segment(s);
}

static void unloaded(void *arg, const char *error, const json_t *parameters)
{
    (void)error; /* it was not there: as wanted */
}

/* The daemon shall forget it. Return: it was told, or cannot be asked; false: try later. */
static bool unload(const struct segment *s)
{
    int rc = daemon_conn_call(&s->link->segments->conn, "io.piped.Unload",
                              json_pack("{s:s}", "name", s->name), false, unloaded, NULL);

    return rc == 0 || rc == -ENOTCONN;
}

static void load(struct segment *s);

static void loaded(void *arg, const char *error, const json_t *parameters)
{
    struct segment *s = arg;
    const char *why = json_string_value(json_object_get(parameters, "why"));
    char text[640] = "the daemon is gone";

    s->waits = false;
    if (s->phase == SEGMENT_FAILED) { /* too late */
        if (!error) {
            unload(s);
        }
        return;
    }
    if (error && strcmp(error, "io.piped.Busy") != 0) {            /* Busy: it is loaded already */
        if (*error && segments_make_room(s->link->segments) > 0) { /* for models, or memory */
            load(s);
            return;
        }
        if (why && strcmp(error, "io.piped.LoadFailed") == 0) {
            snprintf(text, sizeof(text), "%s", why);
        } else if (*error) {
            ipc_varlink_error_text(error, parameters, text, sizeof(text));
        }
        segment_fail(s, PIPED_UNAVAILABLE, text);
        return;
    }
    s->loaded = true;
    s->waits =
        daemon_conn_call(&s->link->segments->conn, "io.piped.Models", NULL, false, listed, s) == 0;
    if (!s->waits) {
        open_segment(s);
    }
}

static void load(struct segment *s)
{
    struct daemon_conn *c = &s->link->segments->conn;
    const char *primitives = s->of.primitives;
    json_t *preprocess = json_loads(s->of.preprocess, 0, NULL); /* "": NULL */

    s->phase = SEGMENT_LOADING;
    s->waits =
        daemon_conn_call(c, "io.piped.Load",
                         json_pack("{s:s, s:s, s:s*, s:o*, s:s}", "name", s->name, "path", s->path,
                                   "primitives", primitives[0] ? primitives : NULL, "preprocess",
                                   preprocess, "board",
                                   s->head == LINK_SELF ? "here" : link_name(s->link, s->head)),
                         false, loaded, s) == 0;
    if (!s->waits) {
        segment_fail(s, PIPED_UNAVAILABLE, "the daemon is not there");
    }
}

/* ---- its file ---- */

static void found(struct segment *s, int status, const char *path_or_why)
{
    s->waits = false;
    if (s->phase == SEGMENT_FAILED) {
        return;
    }
    if (status != 0) {
        segment_fail(s, status, path_or_why);
        return;
    }
    snprintf(s->path, sizeof(s->path), "%s", path_or_why);
    load(s);
}

static void fetched(void *arg, int status, const char *path_or_why)
{
    struct segment *s = arg;

    s->fetched = status == 0;
    found(s, status, path_or_why);
}

/* No file here: its head has one. */
static void fetch(struct segment *s)
{
    int rc;

    if (s->head == LINK_SELF) {
        found(s, PIPED_NOT_FOUND, "this board has no file of that model");
        return;
    }
    rc = fetch_begin(s->link, s->head, s->identity, s->of.leaves, fetched, s);
    if (rc < 0) {
        found(s, rc == -EINVAL ? PIPED_INVALID_ARGUMENT : PIPED_RESOURCE_EXHAUSTED,
              rc == -EINVAL ? "the plan names leaves that are none" : "out of memory");
    }
}

/* A loaded model that is the same file. */
static void looked(void *arg, const char *error, const json_t *parameters)
{
    struct segment *s = arg;
    const json_t *models = error ? NULL : json_object_get(parameters, "models");
    char identity[BRD_KEY_TEXT_BYTES];
    const char *path;

    brd_key_text(s->identity, identity);
    path = json_string_value(json_object_get(json_text_find(models, "hash", identity), "path"));
    if (path) {
        found(s, 0, path);
    } else {
        fetch(s);
    }
}

static void find_file(struct segment *s)
{
    const char *path = s->head == LINK_SELF ? route_path(s->link, s->identity) : NULL;
    const char *folder = s->link->models_folder;
    char identity[BRD_KEY_TEXT_BYTES], own[1024];

    brd_key_text(s->identity, identity);
    snprintf(own, sizeof(own), "%s/%s.onnx", folder ? folder : "", identity);
    if (path || (folder && access(own, R_OK) == 0)) {
        found(s, 0, path ? path : own);
    } else if (daemon_conn_call(&s->link->segments->conn, "io.piped.Models", NULL, false, looked,
                                s) < 0) {
        found(s, PIPED_UNAVAILABLE, "the daemon is not there");
    }
}

void segment_look(struct segment *s, bool silent, uint64_t now_ns)
{
    if (daemon_conn_up(&s->link->segments->conn) && !silent) {
        s->asked = s->waits = true;
        find_file(s);
    } else if (now_ns > s->begun_ns + DAEMON_NS) {
        segment_fail(s, PIPED_UNAVAILABLE, silent ? SEGMENT_SILENT : "the daemon is not there");
    }
}

/* ---- the end ---- */

void segment_free_owned(struct segment *s)
{
    for (size_t i = 0; i < PIXFMT_COUNT; i++) {
        segment_open_leave(s->lane[i].opening);
        piped_close(s->lane[i].piped);
    }
}

void segment_close(struct segment *s)
{
    segment_free_owned(s);
    if (s->fetched) {
        fetch_release(s->link, s->identity);
    }
    *s = (struct segment){0};
}

bool segment_is_idle(const struct segment *s)
{
    return s->users == 0 && s->held == 0 && !s->waits;
}

bool segment_retire(struct segment *s)
{
    if (s->loaded && !unload(s)) {
        return false;
    }
    segment_close(s);
    return true;
}

size_t segments_make_room(struct segments *all)
{
    size_t count = 0;

    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        struct segment *s = &all->segment[i];

        count += s->phase == SEGMENT_READY && segment_is_idle(s) && segment_retire(s);
    }
    return count;
}
