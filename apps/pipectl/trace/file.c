/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's format: a sequence of TracePacket messages (protocol buffers). Only the fields named
 * here are written, so our own encoder is shorter than generated code and needs no memory. */
#include "apps/pipectl/trace/trace.h"

/* Field numbers of perfetto/protos/perfetto/trace. */
enum {
    TRACE_PACKET = 1,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10, /* trusted_packet_sequence_id */
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13, /* sequence_flags */
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    SNAPSHOT_CLOCK = 1,
    SNAPSHOT_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    CLOCK_INCREMENTAL = 3,
    DEFAULTS_TRACK_EVENT = 11,
    DEFAULTS_CLOCK = 58,
    INTERNED_EVENT_NAME = 2,
    INTERNED_ARG_NAME = 3,
    INTERNED_ID = 1,
    INTERNED_TEXT = 2,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_IS_COUNTER = 8,
    TRACK_CHILD_ORDER = 11,
    TRACK_RANK = 12,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    COUNTER_UNIT_NAME = 6,
    EVENT_ARG = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,
    ARG_NAME = 1,
    ARG_UINT = 3,
    ARG_DOUBLE = 5,
    ARG_TEXT = 6,
};
enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_OF_SEQUENCE = 64 };
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { ORDER_EXPLICIT = 3 };
enum { NAME_OF_EVENT = 0, NAME_OF_ARG = 1 }; /* bits of a name in trace_known_track.names */

#define BUFFER_BYTES (1u << 20)
#define TEXT_MAX 1000u /* bytes of a name or text; more is cut */
#define OUTER 1u       /* uuid of the process; tracks have their number + OUTER */

/* A message in the making. It has room for one packet, whose parts are all limited. */
struct message {
    uint8_t bytes[(TRACE_ARGS_MAX + 4) * (TEXT_MAX + 64)];
    size_t used;
};

static void put_varint(struct message *m, uint64_t v)
{
    for (; v >= 128; v >>= 7) {
        m->bytes[m->used++] = (uint8_t)(v | 128);
    }
    m->bytes[m->used++] = (uint8_t)v;
}

static void put_number(struct message *m, unsigned field, uint64_t v)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, v);
}

static void put_fixed(struct message *m, unsigned field, uint64_t v)
{
    put_varint(m, (uint64_t)field << 3 | 1);
    for (unsigned i = 0; i < 8; i++) {
        m->bytes[m->used++] = (uint8_t)(v >> (8 * i));
    }
}

static void put_double(struct message *m, unsigned field, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    put_fixed(m, field, bits);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
    size_t bytes = strlen(text);

    if (bytes > TEXT_MAX) {
        bytes = TEXT_MAX;
        while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) { /* not inside a UTF-8 character */
            bytes--;
        }
    }
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, bytes);
    memcpy(m->bytes + m->used, text, bytes);
    m->used += bytes;
}

/* Begins a message within the message. Return: where, for end_inner(). */
static size_t begin_inner(struct message *m, unsigned field)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    return m->used++; /* its length, mostly one byte */
}

static void end_inner(struct message *m, size_t at)
{
    size_t bytes = m->used - at - 1, more = bytes >= 128 ? bytes >= 128 * 128 ? 2 : 1 : 0;

    memmove(m->bytes + at + 1 + more, m->bytes + at + 1, bytes);
    m->used = at;
    put_varint(m, bytes);
    m->used += bytes;
}

static void write_packet(struct trace_file *f, const struct message *m)
{
    uint8_t head[8] = {TRACE_PACKET << 3 | 2};
    size_t n = 1, left = m->used;

    for (; left >= 128; left >>= 7) {
        head[n++] = (uint8_t)(left | 128);
    }
    head[n++] = (uint8_t)left;
    fwrite_unlocked(head, 1, n, f->to);
    fwrite_unlocked(m->bytes, 1, m->used, f->to);
}

static void put_clock(struct message *m, unsigned id, uint64_t at_ns, bool incremental)
{
    size_t clock = begin_inner(m, SNAPSHOT_CLOCK);

    put_number(m, CLOCK_ID, id);
    put_number(m, CLOCK_TIMESTAMP, at_ns);
    if (incremental) {
        put_number(m, CLOCK_INCREMENTAL, 1);
    }
    end_inner(m, clock);
}

static void put_process(struct trace_file *f)
{
    struct message m = {.used = 0};
    size_t track = begin_inner(&m, PACKET_TRACK_DESCRIPTOR), process;

    put_number(&m, TRACK_UUID, OUTER);
    process = begin_inner(&m, TRACK_PROCESS);
    put_number(&m, PROCESS_PID, (uint64_t)f->pid);
    put_text(&m, PROCESS_NAME, "piped");
    end_inner(&m, process);
    put_number(&m, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
    end_inner(&m, track);
    put_number(&m, PACKET_SEQUENCE, OUTER);
    write_packet(f, &m);
}

static void write_begin(struct trace_file *f)
{
    struct message m = {.used = 0};
    size_t snapshot = begin_inner(&m, PACKET_CLOCK_SNAPSHOT);

    put_clock(&m, CLOCK_MONOTONIC_ID, f->began_ns, false);
    put_clock(&m, CLOCK_REALTIME_ID, f->realtime_ns, false);
    put_number(&m, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
    end_inner(&m, snapshot);
    put_number(&m, PACKET_SEQUENCE, OUTER);
    write_packet(f, &m);
    put_process(f);
}

static void write_track(struct trace_file *f, uint32_t id, const struct trace_track *t)
{
    struct message m = {.used = 0};
    size_t track = begin_inner(&m, PACKET_TRACK_DESCRIPTOR);

    put_number(&m, TRACK_UUID, id + OUTER);
    put_number(&m, TRACK_PARENT, t->parent + OUTER);
    put_text(&m, TRACK_NAME, t->name);
    if (t->kind == TRACE_COUNTER) {
        size_t counter = begin_inner(&m, TRACK_IS_COUNTER);

        put_text(&m, COUNTER_UNIT_NAME, t->unit ? t->unit : "");
        end_inner(&m, counter);
    } else if (t->kind == TRACE_GROUP) {
        put_number(&m, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
    }
    put_number(&m, TRACK_RANK, (uint64_t)t->rank);
    end_inner(&m, track);
    put_number(&m, PACKET_SEQUENCE, id + OUTER);
    write_packet(f, &m);
}

/* The first packet of a track's sequence. Slices count time from the event before. */
static void begin_sequence(struct trace_file *f, const struct trace_known_track *t, uint32_t id)
{
    bool slices = t->kind == TRACE_SLICES;
    struct message m = {.used = 0};
    size_t part, event;

    if (slices) {
        part = begin_inner(&m, PACKET_CLOCK_SNAPSHOT);
        put_clock(&m, CLOCK_MONOTONIC_ID, t->last_ns, false);
        put_clock(&m, CLOCK_OF_SEQUENCE, t->last_ns, true);
        end_inner(&m, part);
    }
    put_number(&m, PACKET_SEQUENCE, id + OUTER);
    put_number(&m, PACKET_FLAGS, FLAG_CLEARED);
    part = begin_inner(&m, PACKET_DEFAULTS);
    event = begin_inner(&m, DEFAULTS_TRACK_EVENT);
    put_number(&m, EVENT_TRACK, id + OUTER);
    end_inner(&m, event);
    put_number(&m, DEFAULTS_CLOCK, slices ? CLOCK_OF_SEQUENCE : CLOCK_MONOTONIC_ID);
    end_inner(&m, part);
    write_packet(f, &m);
}

/* Return: the track's sequence does not know the name yet, and does from now on. */
static bool is_new(struct trace_file *f, struct trace_known_track *t, uint32_t name, unsigned use)
{
    size_t bit = 2u * (size_t)name + use, byte = bit / 8;

    if (byte >= t->name_bytes) {
        size_t bytes = 2u * f->name_room / 8 + 1;
        uint8_t *grown = realloc(t->names, bytes);

        if (!grown) {
            return true; /* told again each time */
        }
        memset(grown + t->name_bytes, 0, bytes - t->name_bytes);
        t->names = grown;
        t->name_bytes = bytes;
    }
    if (t->names[byte] & 1u << bit % 8) {
        return false;
    }
    t->names[byte] = (uint8_t)(t->names[byte] | 1u << bit % 8);
    return true;
}

static void put_interned(struct trace_file *f, struct message *m, unsigned field, uint32_t name)
{
    size_t inner = begin_inner(m, field);

    put_number(m, INTERNED_ID, name);
    put_text(m, INTERNED_TEXT, f->names[name]);
    end_inner(m, inner);
}

/* The names that the event needs and its sequence does not know. */
static void put_names(struct trace_file *f, struct message *m, const struct trace_event *e)
{
    struct trace_known_track *t = &f->tracks[e->track];
    size_t inner = begin_inner(m, PACKET_INTERNED), before = m->used;

    if (e->name && is_new(f, t, e->name, NAME_OF_EVENT)) {
        put_interned(f, m, INTERNED_EVENT_NAME, e->name);
    }
    for (size_t i = 0; i < e->arg_count; i++) {
        if (is_new(f, t, e->args[i].name, NAME_OF_ARG)) {
            put_interned(f, m, INTERNED_ARG_NAME, e->args[i].name);
        }
    }
    if (m->used == before) {
        m->used = inner - 1; /* nothing: takes the field's tag, of one byte, away again */
    } else {
        end_inner(m, inner);
    }
}

static void put_arg(struct message *m, const struct trace_arg *a)
{
    size_t inner = begin_inner(m, EVENT_ARG);

    put_number(m, ARG_NAME, a->name);
    if (a->type == TRACE_ARG_TEXT) {
        put_text(m, ARG_TEXT, a->text);
    } else if (a->type == TRACE_ARG_REAL) {
        put_double(m, ARG_DOUBLE, a->real);
    } else {
        put_number(m, ARG_UINT, a->number);
    }
    end_inner(m, inner);
}

static void write_event(struct trace_file *f, const struct trace_event *e)
{
    static const uint8_t types[] = {
        [TRACE_BEGIN] = 1, [TRACE_END] = 2, [TRACE_INSTANT] = 3, [TRACE_VALUE] = 4};
    struct trace_known_track *t = &f->tracks[e->track];
    static struct message m; /* large; one thread writes */
    size_t event;

    m.used = 0;
    if (!t->begun) {
        begin_sequence(f, t, e->track);
    }
    put_number(&m, PACKET_TIMESTAMP, t->kind == TRACE_SLICES ? e->at_ns - t->last_ns : e->at_ns);
    put_number(&m, PACKET_SEQUENCE, e->track + OUTER);
    put_number(&m, PACKET_FLAGS, FLAG_NEEDS_STATE);
    put_names(f, &m, e);
    event = begin_inner(&m, PACKET_TRACK_EVENT);
    put_number(&m, EVENT_TYPE, types[e->type]);
    if (e->name) {
        put_number(&m, EVENT_NAME, e->name);
    }
    if (e->type == TRACE_VALUE) {
        put_double(&m, EVENT_DOUBLE_VALUE, e->value);
    }
    for (size_t i = 0; i < e->arg_count; i++) {
        put_arg(&m, &e->args[i]);
    }
    if (e->flow != TRACE_FLOW_NONE) {
        put_fixed(&m, e->flow == TRACE_FLOW_END ? EVENT_FLOW_END : EVENT_FLOW, e->flow_id);
    }
    end_inner(&m, event);
    write_packet(f, &m);
}

/* ---- the file ---- */

uint32_t trace_name(struct trace_file *f, const char *text)
{
    for (size_t i = 1; i < f->name_count; i++) {
        if (strcmp(f->names[i], text) == 0) {
            return (uint32_t)i;
        }
    }
    if (!base_room(&f->names, sizeof(f->names[0]), f->name_count, &f->name_room) ||
        !(f->names[f->name_count] = strdup(text))) {
        f->error = ENOMEM;
        return 0;
    }
    return (uint32_t)f->name_count++;
}

uint32_t trace_add_track(struct trace_file *f, const struct trace_track *is)
{
    if (!base_room(&f->tracks, sizeof(f->tracks[0]), f->track_count, &f->track_room)) {
        f->error = ENOMEM;
        return 0;
    }
    f->tracks[f->track_count] = (struct trace_known_track){.kind = is->kind};
    write_track(f, (uint32_t)f->track_count, is);
    return (uint32_t)f->track_count++;
}

void trace_put(struct trace_file *f, const struct trace_event *e)
{
    struct trace_event now = *e;
    struct trace_known_track *t;

    if (e->track == 0) {
        return;
    }
    t = &f->tracks[e->track];
    if (t->kind == TRACE_SLICES) {
        now.at_ns = base_max(e->at_ns, t->last_ns);
        if (!t->begun) {
            t->last_ns = now.at_ns;
        }
    }
    write_event(f, &now);
    t->begun = true;
    t->last_ns = now.at_ns;
}

static struct trace_file *destroy(struct trace_file *f)
{
    for (size_t i = 0; i < f->track_count; i++) {
        free(f->tracks[i].names);
    }
    for (size_t i = 0; i < f->name_count; i++) {
        free(f->names[i]);
    }
    free(f->tracks);
    free(f->names);
    free(f);
    return NULL;
}

struct trace_file *trace_file_open(const char *path, uint64_t began_ns, uint64_t realtime_ns,
                                   int pid)
{
    struct trace_file *f = calloc(1, sizeof(*f));

    if (!f) {
        return NULL;
    }
    f->began_ns = began_ns;
    f->realtime_ns = realtime_ns;
    f->pid = pid;
    if (!base_room(&f->tracks, sizeof(f->tracks[0]), 0, &f->track_room) ||
        !base_room(&f->names, sizeof(f->names[0]), 0, &f->name_room)) {
        return destroy(f);
    }
    f->tracks[0] = (struct trace_known_track){0};
    f->names[0] = NULL;
    f->track_count = f->name_count = 1;
    f->to = fopen(path, "we");
    if (!f->to) {
        return destroy(f);
    }
    setvbuf(f->to, NULL, _IOFBF, BUFFER_BYTES);
    write_begin(f);
    return f;
}

int trace_file_close(struct trace_file *f, uint64_t *ret_bytes)
{
    int error;
    long at;

    error = ferror(f->to) || fflush(f->to) != 0 ? (errno ? errno : EIO) : f->error;
    at = ftell(f->to);
    *ret_bytes = at > 0 ? (uint64_t)at : 0;
    if (fclose(f->to) != 0 && !error) {
        error = errno;
    }
    destroy(f);
    return error;
}
