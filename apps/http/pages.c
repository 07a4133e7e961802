/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: what the status page shows, and metrics. */
#include <stdio.h>
#include <string.h>

#include "apps/http/control.h"
#include "apps/http/pool.h"
#include "apps/http/reply.h"
#include "apps/http/routes.h"
#include "apps/http/watch.h"

/* {status, events, units}; units only with ?units=MODEL. */
void web_status(struct web_request *q, struct web_reply *r)
{
    struct web_control *c = q->listener->web->control;
    const char *model = MHD_lookup_connection_value(q->http, MHD_GET_ARGUMENT_KIND, "units");
    json_t *status = web_ask(c, WEB_STATUS, r), *served, *history, *units = NULL;

    history = status ? web_ask(c, WEB_HISTORY, r) : NULL;
    served = json_object_get(status, "status");
    if (history && model && web_named(json_object_get(served, "models"), model)) {
        units = web_ask_units(c, model);
    }
    if (history) {
        web_reply_json(r, json_pack("{s:O?, s:O?, s:O*}", "status", served, "events",
                                    json_object_get(history, "events"), "units",
                                    json_object_get(units, "units")));
    }
    json_decref(status);
    json_decref(history);
    json_decref(units);
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
        {"connections_cut_total", "counter", "Connections that took too long (--request-s).",
         (double)c->cut},
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

void web_metrics(struct web_request *q, struct web_reply *r)
{
    struct web *w = q->listener->web;
    struct web_text t = {0};
    json_t *reply = web_ask(w->control, WEB_METRICS, NULL);
    bool up = reply != NULL;
    const char *text = json_string_value(json_object_get(reply, "text"));

    if (text) {
        web_text_add(&t, text, strlen(text));
    }
    json_decref(reply);
    metric(&t, "daemon_up", "gauge", "1 while the daemon answers; else its metrics are missing.",
           up);
    own_metrics(w, &t);
    web_reply_text(r, "text/plain; version=0.0.4; charset=utf-8", &t);
}
