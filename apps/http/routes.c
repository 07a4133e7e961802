/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: what is asked for, and what answers it, but for requests to infer. */
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
    json_auto_t *reply = NULL;

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
}

static void models(struct web_request *q, struct web_reply *r)
{
    json_auto_t *reply = web_ask(q->listener->web->control, WEB_MODELS, r);
    json_t *names = reply ? json_array() : NULL;

    if (!reply) {
        return;
    }
    json_text_each(json_object_get(reply, "models"), i, m) {
        if (!shw_is_segment(m)) {
            json_array_append(names, json_object_get(m, "name"));
        }
    }
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
    found = json_text_find(json_object_get(*ret_reply, "models"), "name", q->model);
    failed = json_text_find(json_object_get(*ret_reply, "failed"), "name", q->model);
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
    json_auto_t *reply = NULL;
    json_t *m = find_model(q, r, &reply);

    if (m) {
        web_reply_json(r, json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", q->model, "versions",
                                    "1", "platform", "piped", "inputs",
                                    tensors(json_object_get(m, "inputs")), "outputs",
                                    tensors(json_object_get(m, "outputs"))));
    }
}

static void model_ready(struct web_request *q, struct web_reply *r)
{
    json_auto_t *reply = NULL;

    if (find_model(q, r, &reply)) {
        web_reply_json(r, json_pack("{s:s, s:b}", "name", q->model, "ready", true));
    }
}

/* ---- the status page and metrics ---- */

/* {status, events, units}; units only with ?units=MODEL. */
static void status_page(struct web_request *q, struct web_reply *r)
{
    struct web_control *c = q->listener->web->control;
    const char *model = MHD_lookup_connection_value(q->http, MHD_GET_ARGUMENT_KIND, "units");
    json_auto_t *status = web_ask(c, WEB_STATUS, r), *units = NULL;
    json_auto_t *history = status ? web_ask(c, WEB_HISTORY, r) : NULL;
    json_t *served = json_object_get(status, "status");

    if (!history) {
        return;
    }
    if (model && json_text_find(json_object_get(served, "models"), "name", model)) {
        units = web_ask_units(c, model);
    }
    web_reply_json(r, json_pack("{s:O?, s:O?, s:O*}", "status", served, "events",
                                json_object_get(history, "events"), "units",
                                json_object_get(units, "units")));
}

static void metric(struct web_text *t, const char *name, const char *type, const char *help,
                   double value)
{
    web_text_printf(t, "# HELP piped_http_%s %s\n# TYPE piped_http_%s %s\npiped_http_%s %.17g\n",
                    name, help, name, type, name, value);
}

static void own_metrics(struct web *w, struct web_text *t)
{
    struct web_pool_counts pool = web_pool_count(w->pool);
    size_t idle, used = web_memory_in_use(&w->memory, &idle);
    size_t owed, connections = web_watch_connections(w->watch, &owed);
    const struct web_counters *c = &w->count;
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"infer_total", "counter", "Requests to infer that were received.", (double)c->infers},
        {"infer_seconds_total", "counter", "Time in which they were answered.",
         (double)c->infer_ns / 1e9},
        {"received_bytes_total", "counter", "Bytes of bodies received.", (double)c->received_bytes},
        {"sent_bytes_total", "counter", "Bytes of bodies sent.", (double)c->sent_bytes},
        {"connections_cut_total", "counter",
         "Connections that took too long (--request-s) or lost their place.", (double)c->cut},
        {"connections_refused_total", "counter",
         "Connections without a place (--connections, --per-user, --per-address).",
         (double)c->refused},
        {"connections", "gauge", "Connections of clients.", (double)connections},
        {"requests", "gauge", "Requests under way.", (double)owed},
        {"buffered_bytes", "gauge", "Memory that requests have claimed (--memory-mb).",
         (double)used},
        {"idle_bytes", "gauge", "Memory of slots that wait for the next request.", (double)idle},
        {"streams", "gauge", "Connections to the daemon.", (double)pool.open},
        {"streams_busy", "gauge", "Connections to the daemon with a frame under way.",
         (double)pool.busy},
        {"waiting", "gauge", "Requests that wait for a connection to the daemon.",
         (double)pool.waiting},
    };

    web_text_printf(t, "# HELP piped_http_answers_total Answers, by status.\n"
                       "# TYPE piped_http_answers_total counter\n");
    for (unsigned i = 0; i < WEB_CODES; i++) {
        if (w->count.codes[i] > 0) {
            web_text_printf(t, "piped_http_answers_total{code=\"%u\"} %llu\n", i,
                            (unsigned long long)w->count.codes[i]);
        }
    }
    for (size_t i = 0; i < base_array_count(rows); i++) {
        metric(t, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    }
}

static void metrics(struct web_request *q, struct web_reply *r)
{
    struct web *w = q->listener->web;
    struct web_text t = {0};
    json_auto_t *reply = web_ask(w->control, WEB_METRICS, NULL);
    const char *text = json_string_value(json_object_get(reply, "text"));

    if (text) {
        web_text_add(&t, text, strlen(text));
    }
    metric(&t, "daemon_up", "gauge", "1 while the daemon answers; else its metrics are missing.",
           reply != NULL);
    own_metrics(w, &t);
    web_reply_text(r, "text/plain; version=0.0.4; charset=utf-8", &t);
}

/* ---- paths ---- */

static const struct {
    const char *path;
    struct web_route route;
} FIXED[] = {
    {"/", {.open = true, .type = "text/html; charset=utf-8", .text = web_page_html}},
    {"/page.css", {.open = true, .type = "text/css; charset=utf-8", .text = web_page_css}},
    {"/page.js", {.open = true, .type = "text/javascript; charset=utf-8", .text = web_page_js}},
    {"/status.json", {.answer = status_page}},
    {"/metrics", {.answer = metrics}},
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
