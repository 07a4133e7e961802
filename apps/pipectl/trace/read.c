/* SPDX-License-Identifier: Apache-2.0 */
/* Batches become tracks, instants and values. */
#include "apps/pipectl/common/output.h"
#include "apps/pipectl/trace/trace.h"
#include "base/shown_text.h"

#define MEMBERS_MAX (1u << 20)
#define RANK_MODELS 10
#define RANK_MACHINE 100000
#define RANK_COUNTERS 2000000 /* behind the teams of a model */

bool trace_room(void **array, size_t *count, size_t index, size_t bytes)
{
    void *grown;

    if (index < *count) {
        return true;
    }
    grown = index < MEMBERS_MAX ? realloc(*array, (index + 1) * bytes) : NULL;
    if (!grown) {
        return false;
    }
    memset((char *)grown + *count * bytes, 0, (index + 1 - *count) * bytes);
    *array = grown;
    *count = index + 1;
    return true;
}

struct trace_reader *trace_reader_new(struct trace_file *f)
{
#define TRACE_TEXT(number, text) [number] = text,
    static const char *const words[WORD_COUNT] = {TRACE_WORDS(TRACE_TEXT)};
    struct trace_reader *r = calloc(1, sizeof(*r));

    for (size_t i = 0; r && i < WORD_COUNT; i++) {
        r->words[i] = trace_name(f, words[i]);
    }
    if (r) {
        r->f = f;
    }
    return r;
}

struct trace_reader *trace_reader_free(struct trace_reader *r)
{
    if (!r) {
        return NULL;
    }
    for (size_t i = 0; i < r->pipeline_count; i++) {
        free(r->pipelines[i].units);
    }
    for (size_t i = 0; i < r->stream_count; i++) {
        free(r->streams[i].lanes);
    }
    free(r->pipelines);
    free(r->teams);
    free(r->streams);
    free(r->groups);
    free(r->counters);
    free(r->record);
    free(r);
    return NULL;
}

static uint32_t whole(const json_t *object, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(object, key));

    return v > 0 ? (uint32_t)base_min(v, (json_int_t)UINT32_MAX) : 0;
}

static uint64_t at_ns(const json_t *object)
{
    json_int_t v = json_integer_value(json_object_get(object, "at_ns"));

    return v > 0 ? (uint64_t)v : 0;
}

/* The group of a model, or of the machine (""). Return: NULL: out of memory. */
static struct trace_group *group_of(struct trace_reader *r, const char *model)
{
    size_t i = 0;
    char name[200];
    uint32_t known;

    while (i < r->group_count && strcmp(r->groups[i].model, model) != 0) {
        i++;
    }
    if (i < r->group_count) {
        return &r->groups[i];
    }
    known = trace_name(r->f, model);
    if (!known || !trace_room((void **)&r->groups, &r->group_count, i, sizeof(r->groups[0]))) {
        return NULL;
    }
    snprintf(name, sizeof(name), "%s%.150s", *model ? "model " : "machine", model);
    r->groups[i].model = r->f->names[known];
    r->groups[i].group = trace_add_track(
        r->f, &(struct trace_track){.kind = TRACE_GROUP,
                                    .name = name,
                                    .rank = *model ? RANK_MODELS + (int)i : RANK_MACHINE});
    r->groups[i].instants =
        trace_add_track(r->f, &(struct trace_track){.kind = TRACE_INSTANTS,
                                                    .parent = r->groups[i].group,
                                                    .name = "plans and decisions"});
    return &r->groups[i];
}

static void add_pipeline(struct trace_reader *r, const json_t *of)
{
    const json_t *units = json_object_get(of, "units");
    uint32_t id = whole(of, "pipeline");
    const char *model = ctl_text(of, "model");
    struct trace_group *group = group_of(r, model);
    struct trace_pipeline *p;

    if (!group ||
        !trace_room((void **)&r->pipelines, &r->pipeline_count, id, sizeof(r->pipelines[0]))) {
        return;
    }
    p = &r->pipelines[id];
    free(p->units);
    p->model = trace_name(r->f, model);
    p->group = group->group;
    p->unit_count = json_array_size(units);
    p->units = calloc(p->unit_count + 1, sizeof(p->units[0]));
    if (!p->units) {
        p->unit_count = 0;
        return;
    }
    json_text_each(units, i, unit) {
        const char *text = json_is_string(unit) ? json_string_value(unit) : "?";
        char name[300];

        snprintf(name, sizeof(name), "%zu %.*s", i, (int)shown_fit(text, 250), text);
        p->units[i] = trace_name(r->f, name);
    }
}

/* "epoch 2 stage 0 big, cpus 0-1", and which team of the stage if it has several. */
static void name_team(const json_t *of, uint32_t pipeline, char *ret, size_t bytes)
{
    const json_t *cpus = json_object_get(of, "cpus");
    char list[128] = "", replica[32] = "", load[32] = "";

    json_text_each(cpus, i, cpu) {
        base_append(list, sizeof(list), "%s%d", i ? "," : "", (int)json_integer_value(cpu));
    }
    if (whole(of, "replica") > 0) {
        snprintf(replica, sizeof(replica), " team %u", whole(of, "replica"));
    }
    if (pipeline > 1) {
        snprintf(load, sizeof(load), ", load %u", pipeline);
    }
    snprintf(ret, bytes, "epoch %u stage %u %.48s%s, cpu %s%s", whole(of, "epoch"),
             whole(of, "stage"), ctl_text(of, "ep"), replica, list, load);
}

static void add_team(struct trace_reader *r, const json_t *of)
{
    uint32_t track = whole(of, "track"), pipeline = whole(of, "pipeline");
    int rank = (int)base_min(whole(of, "epoch"), 7000u) * 256 + (int)whole(of, "stage") % 256;
    char name[300], queue[340];
    struct trace_team *t;

    if (pipeline >= r->pipeline_count || !r->pipelines[pipeline].units ||
        !trace_room((void **)&r->teams, &r->team_count, track, sizeof(r->teams[0]))) {
        r->counts.bad++;
        return;
    }
    t = &r->teams[track];
    t->pipeline = pipeline;
    t->epoch = whole(of, "epoch");
    t->first_unit = whole(of, "first_unit");
    name_team(of, pipeline, name, sizeof(name));
    snprintf(queue, sizeof(queue), "frames waiting for %s", name);
    t->track = trace_add_track(r->f, &(struct trace_track){.kind = TRACE_SLICES,
                                                           .parent = r->pipelines[pipeline].group,
                                                           .name = name,
                                                           .rank = rank});
    t->queue = trace_add_track(r->f, &(struct trace_track){.kind = TRACE_COUNTER,
                                                           .parent = r->pipelines[pipeline].group,
                                                           .name = queue,
                                                           .unit = "frames",
                                                           .rank = RANK_COUNTERS + rank});
    r->counts.teams++;
}

/* What is most worth reading without a click. */
static void name_event(const json_t *e, char *ret, size_t bytes)
{
    const char *kind = ctl_text(e, "event");
    const char *key = strcmp(kind, "plan") == 0 || strcmp(kind, "trial") == 0 ? "plan"
                      : strcmp(kind, "retune") == 0                           ? "algorithm"
                                                                              : "cause";

    if (json_object_get(e, key)) {
        snprintf(ret, bytes, "%s: %.200s", kind, ctl_text(e, key));
    } else {
        snprintf(ret, bytes, "%s", kind);
    }
}

static void add_event(struct trace_reader *r, const json_t *e)
{
    const char *model = json_string_value(json_object_get(e, "model")), *key;
    struct trace_group *group = group_of(r, model ? model : "");
    struct trace_arg args[TRACE_ARGS_MAX];
    struct trace_event event = {.type = TRACE_INSTANT, .at_ns = at_ns(e), .args = args};
    char name[256];
    json_t *value;

    name_event(e, name, sizeof(name));
    json_object_foreach((json_t *)e, key, value)
    {
        struct trace_arg *a = &args[event.arg_count];

        if (event.arg_count == TRACE_ARGS_MAX || strcmp(key, "at_ns") == 0) {
            continue;
        }
        *a = (struct trace_arg){.name = trace_name(r->f, key), .type = TRACE_ARG_TEXT};
        if (json_is_number(value)) {
            a->type = TRACE_ARG_REAL;
            a->real = json_number_value(value);
        } else {
            a->text = json_is_string(value) ? json_string_value(value)
                      : json_is_true(value) ? "yes"
                                            : "no";
        }
        event.arg_count += json_is_number(value) || json_is_string(value) || json_is_boolean(value);
    }
    event.name = trace_name(r->f, name);
    event.track = group ? group->instants : 0;
    trace_put(r->f, &event);
    r->counts.instants++;
}

static void add_value(struct trace_reader *r, const json_t *v)
{
    const char *of = ctl_text(v, "of");
    uint32_t owner = trace_name(r->f, of), name = trace_name(r->f, ctl_text(v, "name"));
    struct trace_group *group;
    size_t i = 0;

    while (i < r->counter_count && (r->counters[i].of != owner || r->counters[i].name != name)) {
        i++;
    }
    if (i == r->counter_count) {
        group = group_of(r, of);
        if (!group ||
            !trace_room((void **)&r->counters, &r->counter_count, i, sizeof(r->counters[0]))) {
            return;
        }
        r->counters[i] = (struct trace_counter){.of = owner, .name = name};
        r->counters[i].track =
            trace_add_track(r->f, &(struct trace_track){.kind = TRACE_COUNTER,
                                                        .parent = group->group,
                                                        .name = ctl_text(v, "name"),
                                                        .unit = ctl_text(v, "unit"),
                                                        .rank = RANK_COUNTERS + (int)i});
    }
    trace_put(r->f, &(struct trace_event){.type = TRACE_VALUE,
                                          .track = r->counters[i].track,
                                          .at_ns = at_ns(v),
                                          .value = ctl_real(v, "value")});
    r->counts.values++;
}

void trace_reader_batch(struct trace_reader *r, const json_t *batch)
{
    static const struct {
        const char *key;
        void (*add)(struct trace_reader *r, const json_t *item);
    } lists[] = {{"pipelines", add_pipeline},
                 {"teams", add_team},
                 {"events", add_event},
                 {"counters", add_value}};

    for (size_t i = 0; i < base_array_count(lists); i++) {
        json_text_each(json_object_get(batch, lists[i].key), k, item) {
            lists[i].add(r, item);
        }
    }
}
