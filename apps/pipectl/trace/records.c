/* SPDX-License-Identifier: Apache-2.0 */
/* Records become slices: units and waits of teams, frames of streams. */
#include <endian.h>

#include "apps/pipectl/trace/trace.h"
#include "base/trace_record.h"
#include "ipc/wire.h"

#define LANES_MAX 1024u

static struct trace_arg number(const struct trace_reader *r, enum trace_word word, uint64_t value)
{
    return (struct trace_arg){.name = r->words[word], .type = TRACE_ARG_NUMBER, .number = value};
}

static struct trace_arg text(const struct trace_reader *r, enum trace_word word, const char *value)
{
    return (struct trace_arg){.name = r->words[word], .type = TRACE_ARG_TEXT, .text = value};
}

static void begin(struct trace_reader *r, uint32_t track, uint64_t at_ns, uint32_t name,
                  const struct trace_arg *args, size_t count)
{
    struct trace_event e = {TRACE_BEGIN, track, at_ns, name, .args = args, .arg_count = count};

    trace_put(r->f, &e);
}

static void end(struct trace_reader *r, uint32_t track, uint64_t at_ns)
{
    trace_put(r->f, &(struct trace_event){.type = TRACE_END, .track = track, .at_ns = at_ns});
}

static void slice(struct trace_reader *r, uint32_t track, uint64_t from_ns, uint64_t to_ns,
                  enum trace_word word)
{
    if (to_ns > from_ns) {
        begin(r, track, from_ns, r->words[word], NULL, 0);
        end(r, track, to_ns);
    }
}

static uint64_t flow_of(uint32_t pipeline, uint64_t frame)
{
    return (uint64_t)pipeline << 48 | (frame + 1);
}

/* What the team did since its last frame. */
static void put_waits(struct trace_reader *r, const struct trace_team *t, const uint32_t *w)
{
    uint64_t given = trace_u64(w + TRACE_TEAM_GIVEN), start = trace_u64(w + TRACE_TEAM_START);
    struct trace_arg slept = number(r, WORD_SLEPT, (w[TRACE_TEAM_FLAGS] & TRACE_TEAM_SLEPT) != 0);

    if (t->last_ns == 0 || start <= t->last_ns) {
        return;
    }
    if (w[TRACE_TEAM_FLAGS] & TRACE_TEAM_GAP) {
        slice(r, t->track, t->last_ns, start, WORD_LOST);
    } else if (given <= t->last_ns) {
        slice(r, t->track, t->last_ns, start, WORD_TAKES);
    } else {
        uint64_t idle_end = base_min(given, start);

        begin(r, t->track, t->last_ns, r->words[WORD_WAITS], &slept, 1);
        end(r, t->track, idle_end);
        slice(r, t->track, idle_end, start, WORD_WAKES);
    }
}

static void put_units(struct trace_reader *r, const struct trace_team *t, const uint32_t *w)
{
    const struct trace_pipeline *p = &r->pipelines[t->pipeline];
    uint64_t at = trace_u64(w + TRACE_TEAM_START), stop = trace_u64(w + TRACE_TEAM_END);
    bool taken = (w[TRACE_TEAM_FLAGS] & TRACE_TEAM_TAKEN) != 0;
    uint32_t count = (trace_words_of(w[0]) - TRACE_TEAM_UNITS) / (taken ? 2 : 1);

    w += TRACE_TEAM_UNITS;
    for (uint32_t i = 0; i < count; i++) {
        size_t unit = t->first_unit + i;
        uint64_t until = base_min(at + w[i], stop);
        uint64_t others = taken ? base_min((uint64_t)w[count + i], until - at) : 0;

        begin(r, t->track, at, unit < p->unit_count ? p->units[unit] : 0, NULL, 0);
        end(r, t->track, until - others);
        slice(r, t->track, until - others, until, WORD_OTHERS);
        at = until;
    }
}

static void put_team(struct trace_reader *r, uint32_t track, const uint32_t *w)
{
    struct trace_team *t = &r->teams[track];
    uint64_t start = trace_u64(w + TRACE_TEAM_START), stop = trace_u64(w + TRACE_TEAM_END);
    uint64_t given = trace_u64(w + TRACE_TEAM_GIVEN), frame = trace_u64(w + TRACE_TEAM_NUMBER);
    bool computed = w[TRACE_TEAM_STATUS] == 0;
    struct trace_arg args[] = {
        number(r, WORD_FRAME, trace_u64(w + TRACE_TEAM_TAG)), number(r, WORD_NUMBER, frame),
        text(r, WORD_MODEL, r->f->names[r->pipelines[t->pipeline].model]),
        number(r, WORD_EPOCH, t->epoch), number(r, WORD_QUEUED, start > given ? start - given : 0)};

    put_waits(r, t, w);
    trace_put(r->f, &(struct trace_event){.type = TRACE_BEGIN,
                                          .track = t->track,
                                          .at_ns = start,
                                          .name = r->words[computed ? WORD_FRAME : WORD_PASSED_ON],
                                          .args = args,
                                          .arg_count = base_array_count(args),
                                          .flow = TRACE_FLOW_STEP,
                                          .flow_id = flow_of(t->pipeline, frame)});
    put_units(r, t, w);
    end(r, t->track, stop);
    trace_put(r->f, &(struct trace_event){.type = TRACE_VALUE,
                                          .track = t->queue,
                                          .at_ns = stop,
                                          .value = w[TRACE_TEAM_WAITING]});
    t->last_ns = stop;
    r->counts.frames++;
}

static void put_stream(struct trace_reader *r, const uint32_t *w)
{
    uint32_t words[64] = {0};
    uint32_t count = base_min(trace_words_of(w[0]) - TRACE_STREAM_NAME, 63u);

    if (!trace_room((void **)&r->streams, &r->stream_count, w[TRACE_STREAM_TRACK],
                    sizeof(r->streams[0]))) {
        r->counts.bad++;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        words[i] = htole32(w[TRACE_STREAM_NAME + i]);
    }
    snprintf(r->streams[w[TRACE_STREAM_TRACK]].name, sizeof(r->streams[0].name),
             "%u: %.100s (pid %u) stream %u", w[TRACE_STREAM_TRACK], (const char *)words,
             w[TRACE_STREAM_PID], w[TRACE_STREAM_ID]);
    r->counts.streams++;
}

/* Frames of a stream overlap: each goes to a lane that is free, all of the same name, which the
 * viewer shows as one track. Return: 0: none. */
static uint32_t lane_of(struct trace_reader *r, uint32_t stream, uint64_t from_ns, uint64_t to_ns)
{
    struct trace_stream *s = &r->streams[stream];
    size_t i = 0;

    while (i < s->lane_count && s->lanes[i].until_ns > from_ns) {
        i++;
    }
    if (i == LANES_MAX || (i == s->lane_count && !trace_room((void **)&s->lanes, &s->lane_count, i,
                                                             sizeof(s->lanes[0])))) {
        return 0;
    }
    if (!r->clients) {
        r->clients = trace_add_track(
            r->f, &(struct trace_track){.kind = TRACE_GROUP, .name = "clients", .rank = 1});
    }
    if (!s->lanes[i].track) {
        s->lanes[i].track = trace_add_track(r->f, &(struct trace_track){.kind = TRACE_SLICES,
                                                                        .parent = r->clients,
                                                                        .name = s->name,
                                                                        .rank = (int)stream});
    }
    s->lanes[i].until_ns = to_ns;
    return s->lanes[i].track;
}

static void put_flow_slice(struct trace_reader *r, uint32_t track, uint64_t from_ns, uint64_t to_ns,
                           enum trace_word word, enum trace_flow flow, uint64_t flow_id)
{
    trace_put(r->f, &(struct trace_event){.type = TRACE_BEGIN,
                                          .track = track,
                                          .at_ns = from_ns,
                                          .name = r->words[word],
                                          .flow = flow,
                                          .flow_id = flow_id});
    end(r, track, to_ns);
}

static void put_answer(struct trace_reader *r, const uint32_t *w)
{
    uint64_t arrived = trace_u64(w + TRACE_ANSWER_ARRIVED), done, admitted;
    uint64_t answered = base_max(trace_u64(w + TRACE_ANSWER_ANSWERED), arrived);
    uint32_t pipeline = w[TRACE_ANSWER_PIPELINE];
    bool here = pipeline > 0 && pipeline < r->pipeline_count && r->pipelines[pipeline].units;
    uint64_t flow = flow_of(pipeline, trace_u64(w + TRACE_ANSWER_NUMBER));
    const char *status = ipc_status_name(w[TRACE_ANSWER_STATUS]);
    struct trace_arg args[] = {
        number(r, WORD_FRAME, trace_u64(w + TRACE_ANSWER_FRAME)), text(r, WORD_STATUS, status),
        text(r, WORD_MODEL, here ? r->f->names[r->pipelines[pipeline].model] : ""),
        number(r, WORD_EPOCH, w[TRACE_ANSWER_EPOCH]),
        number(r, WORD_NUMBER, trace_u64(w + TRACE_ANSWER_NUMBER))};
    uint32_t track;

    if (w[TRACE_ANSWER_TRACK] >= r->stream_count || !r->streams[w[TRACE_ANSWER_TRACK]].name[0]) {
        r->counts.bad++;
        return;
    }
    track = lane_of(r, w[TRACE_ANSWER_TRACK], arrived, answered);
    begin(r, track, arrived,
          w[TRACE_ANSWER_STATUS] == IPC_OK ? r->words[WORD_FRAME] : trace_name(r->f, status), args,
          here ? 5 : 2);
    if (here) {
        admitted = base_min(base_max(trace_u64(w + TRACE_ANSWER_ADMITTED), arrived), answered);
        done = base_min(base_max(trace_u64(w + TRACE_ANSWER_DONE), admitted), answered);
        slice(r, track, arrived, admitted, WORD_ROOM);
        put_flow_slice(r, track, admitted, done, WORD_PIPELINE, TRACE_FLOW_BEGIN, flow);
        put_flow_slice(r, track, done, answered, WORD_TURN, TRACE_FLOW_END, flow);
    }
    end(r, track, answered);
    r->counts.answers++;
}

/* Return: the record's words in this CPU's order, of which @head has the number. */
static const uint32_t *to_host(struct trace_reader *r, const uint32_t *words, uint32_t head)
{
    uint32_t length = trace_words_of(head);

    if (!trace_room((void **)&r->record, &r->record_room, length, sizeof(r->record[0]))) {
        return NULL;
    }
    for (uint32_t i = 0; i < length; i++) {
        r->record[i] = le32toh(words[i]);
    }
    return r->record;
}

static void put_record(struct trace_reader *r, uint32_t track, const uint32_t *w)
{
    uint32_t length = trace_words_of(w[0]), kind = trace_kind_of(w[0]);

    if (kind == TRACE_TEAM && length >= TRACE_TEAM_UNITS && track > 0 && track < r->team_count &&
        r->teams[track].track > 0) {
        put_team(r, track, w);
    } else if (kind == TRACE_STREAM && length > TRACE_STREAM_NAME) {
        put_stream(r, w);
    } else if (kind == TRACE_ANSWER && length >= TRACE_ANSWER_WORDS) {
        put_answer(r, w);
    } else {
        r->counts.bad++;
    }
}

void trace_reader_records(struct trace_reader *r, uint32_t track, const uint32_t *words,
                          size_t count)
{
    r->counts.bad += count == 0;
    for (size_t at = 0; at < count;) {
        uint32_t head = le32toh(words[at]), length = trace_words_of(head);
        const uint32_t *w =
            length > 0 && length <= count - at ? to_host(r, words + at, head) : NULL;

        if (!w) {
            r->counts.bad++;
            return; /* nothing behind it can be told apart */
        }
        put_record(r, track, w);
        at += length;
    }
}
