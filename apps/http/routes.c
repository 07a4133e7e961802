/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/http/routes.h"

#include "apps/http/control.h"
#include "apps/http/reply.h"
#include "apps/http/tensors.h"
#include "apps/show/fold_segments.h"
#include "base/json_text.h"
#include "page_text.h"

#define MODELS_PATH "/v2/models/"

static void server(struct web_request *q, struct web_reply *r)
{
    web_reply_json(r,
                   json_pack("{s:s, s:s, s:[s,s,s]}", "name", "piped", "version", PIPED_VERSION,
                             "extensions", "binary_tensor_data", "image_body", "decoded_outputs"));
}

static void live(struct web_request *q, struct web_reply *r)
{
    web_reply_json(r, json_pack("{s:b}", "live", true));
}

/* As pipectl health --ready. */
static void ready(struct web_request *q, struct web_reply *r)
{
    const json_t *status, *failed;
    json_t *reply;

    if (q->listener->web->draining) {
        web_fail(r, 503, "this server is stopping");
        return;
    }
    reply = web_ask(q->listener->web->control, WEB_STATUS, r);
    if (!reply) {
        return;
    }
    status = json_object_get(reply, "status");
    failed = json_array_get(json_object_get(status, "failed_models"), 0);
    if (strcmp(json_text_of(status, "state"), "draining") == 0) {
        web_fail(r, 503, "the daemon is stopping");
    } else if (failed) {
        web_fail(r, 503, "model %s could not be loaded: %s", json_text_of(failed, "name"),
                 json_text_of(failed, "error"));
    } else if (json_array_size(json_object_get(status, "models")) == 0) {
        web_fail(r, 503, "no model is loaded");
    } else if (strcmp(json_text_of(status, "state"), "degraded") == 0) {
        web_fail(r, 503, "the daemon is degraded; pipectl status says why");
    } else {
        web_reply_json(r, json_pack("{s:b, s:b}", "live", true, "ready", true));
    }
    json_decref(reply);
}

static void models(struct web_request *q, struct web_reply *r)
{
    json_t *reply = web_ask(q->listener->web->control, WEB_MODELS, r), *names;

    if (!reply) {
        return;
    }
    names = json_array();
    json_text_each(json_object_get(reply, "models"), i, m) {
        if (!shw_is_segment(m)) {
            json_array_append(names, json_object_get(m, "name"));
        }
    }
    json_decref(reply);
    web_reply_json(r, json_pack("{s:o}", "models", names));
}

/* The model of a Models reply; NULL: @r says why not. @ret_reply: the caller's reference. */
static json_t *find_model(const struct web_request *q, struct web_reply *r, json_t **ret_reply)
{
    json_t *failed, *found;

    *ret_reply = web_ask(q->listener->web->control, WEB_MODELS, r);
    if (!*ret_reply) {
        return NULL;
    }
    found = web_named(json_object_get(*ret_reply, "models"), q->model);
    failed = web_named(json_object_get(*ret_reply, "failed"), q->model);
    if (!found && failed) {
        web_fail(r, 503, "model %s could not be loaded: %s", q->model,
                 json_text_of(failed, "error"));
    } else if (!found) {
        web_fail(r, 404, "there is no model %s", q->model);
    }
    return found;
}

static json_t *tensors(const json_t *list)
{
    json_t *all = json_array();

    json_text_each(list, i, t) {
        json_array_append_new(all, json_pack("{s:O, s:s, s:O}", "name", json_object_get(t, "name"),
                                             "datatype", web_datatype_of(json_text_of(t, "dtype")),
                                             "shape", json_object_get(t, "shape")));
    }
    return all;
}

static void model(struct web_request *q, struct web_reply *r)
{
    json_t *reply, *m = find_model(q, r, &reply);

    if (m) {
        web_reply_json(r, json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", q->model, "versions",
                                    "1", "platform", "piped", "inputs",
                                    tensors(json_object_get(m, "inputs")), "outputs",
                                    tensors(json_object_get(m, "outputs"))));
    }
    json_decref(reply);
}

static void model_ready(struct web_request *q, struct web_reply *r)
{
    json_t *reply;

    if (find_model(q, r, &reply)) {
        web_reply_json(r, json_pack("{s:s, s:b}", "name", q->model, "ready", true));
    }
    json_decref(reply);
}

static const struct {
    const char *path;
    struct web_route route;
} FIXED[] = {
    {"/", {.open = true, .type = "text/html; charset=utf-8", .text = web_page_html}},
    {"/page.css", {.open = true, .type = "text/css; charset=utf-8", .text = web_page_css}},
    {"/page.js", {.open = true, .type = "text/javascript; charset=utf-8", .text = web_page_js}},
    {"/status.json", {.answer = web_status}},
    {"/metrics", {.answer = web_metrics}},
    {"/v2", {.answer = server}},
    {"/v2/", {.answer = server}},
    {"/v2/health/live", {.answer = live}},
    {"/v2/health/ready", {.answer = ready}},
    {"/v2/models", {.answer = models}},
};

/* What follows the model's name, and perhaps "/versions/1". */
static const struct {
    const char *path;
    struct web_route route;
} OF_MODEL[] = {
    {"", {.answer = model}},
    {"/ready", {.answer = model_ready}},
    {"/infer", {.body = true, .answer = web_infer}},
};

/* Skips "/versions/1". Return: NULL: another version is named. */
static const char *skip_version(const char *rest)
{
    if (strncmp(rest, "/versions/", 10) != 0) {
        return rest;
    }
    rest += 10;
    return rest[0] == '1' && (rest[1] == '/' || !rest[1]) ? rest + 1 : NULL;
}

static const struct web_route *find_of_model(const char *path, char *ret_model, struct web_reply *r)
{
    size_t n = strcspn(path, "/");
    const char *rest = skip_version(path + n);

    if (n == 0 || n >= sizeof(((struct web_request *)0)->model)) {
        web_fail(r, 404, "there is no model of this name");
        return NULL;
    }
    snprintf(ret_model, n + 1, "%s", path);
    for (size_t i = 0; rest && i < base_array_count(OF_MODEL); i++) {
        if (strcmp(rest, OF_MODEL[i].path) == 0) {
            return &OF_MODEL[i].route;
        }
    }
    web_fail(r, 404,
             rest ? "there is nothing at this path; see piped-http(8)"
                  : "the only version of a model is 1");
    return NULL;
}

const struct web_route *web_route_find(const char *path, char *ret_model, struct web_reply *r)
{
    for (size_t i = 0; i < base_array_count(FIXED); i++) {
        if (strcmp(path, FIXED[i].path) == 0) {
            return &FIXED[i].route;
        }
    }
    if (strncmp(path, MODELS_PATH, strlen(MODELS_PATH)) == 0) {
        return find_of_model(path + strlen(MODELS_PATH), ret_model, r);
    }
    web_fail(r, 404, "there is nothing at this path; see piped-http(8)");
    return NULL;
}
