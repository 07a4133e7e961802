/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/clients_json.h"

#include "base/base.h"
#include "base/json_text.h"
#include "daemon/frames/frames.h"

static json_t *stream_json(const struct dmn_stream_info *s)
{
    json_t *picture =
        s->width ? json_pack("[I, I]", (json_int_t)s->width, (json_int_t)s->height) : json_null();

    return json_pack("{s:I, s:s?, s:s, s:s, s:o, s:I, s:I, s:f, s:f, s:f, s:I}", "stream",
                     (json_int_t)s->id, "model", s->model, "pixfmt", s->pixfmt, "policy", s->policy,
                     "picture", picture, "credits", (json_int_t)s->flow.credits, "unanswered",
                     (json_int_t)s->flow.unanswered, "some_s", (double)s->use.some_ns / 1e9,
                     "more_s", (double)s->use.more_ns / 1e9, "full_s", (double)s->use.full_ns / 1e9,
                     "fills", (json_int_t)s->use.fills);
}

static void add_client(void *ctx, const struct dmn_client_info *c)
{
    json_t *opened = json_array();

    for (size_t i = 0; i < c->streams; i++) {
        json_array_append_new(opened, stream_json(&c->opened[i]));
    }
    json_array_append_new(
        ctx, json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:o}", "client", c->client, "pid",
                       (int)c->pid, "uid", (int)c->uid, "streams", (json_int_t)c->streams,
                       "unanswered", (json_int_t)c->unanswered, "answered", (json_int_t)c->answered,
                       "backlog_bytes", (json_int_t)c->backlog_bytes, "opened", opened));
}

json_t *dmn_clients_json(const struct dmn_frames *f)
{
    json_t *list = json_array();

    dmn_frames_each_client(f, add_client, list);
    return list;
}

json_t *dmn_refusals_json(const struct dmn_frames *f)
{
    uint64_t now_ns = base_now_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        const struct dmn_refused_client *r = &f->refusals.list[i];
        json_t *entry;

        if (r->count == 0) {
            continue;
        }
        /* the reason may quote what the client sent */
        entry = json_pack("{s:s, s:i, s:i, s:s, s:s, s:o*, s:I, s:f}", "client", r->client, "pid",
                          (int)r->pid, "uid", (int)r->uid, "what", dmn_refused_name(r->what),
                          "status", ipc_status_name(r->status), "why", json_text_shown(r->why),
                          "count", (json_int_t)r->count, "ago_s",
                          (double)(now_ns - base_min(now_ns, r->last_ns)) / 1e9);
        json_array_append_new(list, entry);
    }
    return list;
}
