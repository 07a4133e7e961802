/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome's JSON format ("Trace Event Format"), for programs that do not read Perfetto's. Groups are
 * processes there, tracks are threads; times are in microseconds. */
#include <inttypes.h>

#include "base.h"
#include "ipc/pipectl/trace_file.h"

static void put_string(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(to, "\\%c", *c);
        } else if (*c < 0x20) {
            fprintf(to, "\\u%04x", *c);
        } else {
            putc(*c, to);
        }
    }
    putc('"', to);
}

static void put_number(FILE *to, const char *key, uint64_t value)
{
    fprintf(to, ",\"%s\":%" PRIu64, key, value);
}

/* The first object of the list has no comma before it. */
static void begin(struct trace_file *f)
{
    fprintf(f->to,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":\"monotonic\",\"pid\":%d,"
            "\"realtime_ns_at_begin\":%" PRIu64 ",\"begin_ns\":%" PRIu64 "},\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"piped\"}}",
            f->pid, f->realtime_ns, f->began_ns);
}

static void put_metadata(struct trace_file *f, const char *what, uint32_t pid, uint32_t tid,
                         const char *name)
{
    fprintf(f->to,
            ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what, pid,
            tid);
    put_string(f->to, name);
    fputs("}}", f->to);
}

static void put_track(struct trace_file *f, uint32_t id)
{
    const struct trace_known_track *t = &f->tracks[id];

    if (t->is.kind == TRACE_GROUP && !t->is.parent) {
        put_metadata(f, "process_name", t->process, 0, t->is.name);
    } else if (t->is.kind != TRACE_COUNTER) {
        put_metadata(f, "thread_name", t->process, id, t->is.name);
        fprintf(f->to,
                ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%u,\"tid\":%u,"
                "\"args\":{\"sort_index\":%d}}",
                t->process, id, t->is.rank);
    }
}

static void put_where(struct trace_file *f, char phase, const struct trace_event *e)
{
    fprintf(f->to, ",\n{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u", phase,
            f->tracks[e->track].process, e->track, e->at_ns / 1000, (unsigned)(e->at_ns % 1000));
}

static void put_name(struct trace_file *f, const char *name)
{
    fputs(",\"cat\":\"piped\",\"name\":", f->to);
    put_string(f->to, name);
}

static void put_args(struct trace_file *f, const struct trace_event *e)
{
    fputs(",\"args\":{", f->to);
    for (size_t i = 0; i < e->arg_count; i++) {
        const struct trace_arg *a = &e->args[i];

        fputs(i ? "," : "", f->to);
        put_string(f->to, f->names[a->name]);
        putc(':', f->to);
        if (a->type == TRACE_ARG_TEXT) {
            put_string(f->to, a->text);
        } else if (a->type == TRACE_ARG_REAL) {
            fprintf(f->to, "%.9g", a->real);
        } else {
            fprintf(f->to, "%" PRIu64, a->number);
        }
    }
    putc('}', f->to);
}

static void put_flow(struct trace_file *f, const struct trace_event *e)
{
    static const char phases[] = {
        [TRACE_FLOW_BEGIN] = 's', [TRACE_FLOW_STEP] = 't', [TRACE_FLOW_END] = 'f'};

    put_where(f, phases[e->flow], e);
    put_name(f, "frame");
    put_number(f->to, "id", e->flow_id);
    fputs(e->flow == TRACE_FLOW_END ? ",\"bp\":\"e\"}" : "}", f->to);
}

static void put_event(struct trace_file *f, const struct trace_event *e)
{
    static const char phases[] = {
        [TRACE_BEGIN] = 'B', [TRACE_END] = 'E', [TRACE_INSTANT] = 'i', [TRACE_VALUE] = 'C'};

    put_where(f, phases[e->type], e);
    if (e->type == TRACE_VALUE) {
        put_name(f, f->tracks[e->track].is.name);
        fprintf(f->to, ",\"args\":{\"value\":%.9g}", e->value);
    } else if (e->type != TRACE_END) {
        put_name(f, e->name ? f->names[e->name] : "?");
    }
    if (e->type == TRACE_INSTANT) {
        fputs(",\"s\":\"t\"", f->to);
    }
    if (e->arg_count > 0) {
        put_args(f, e);
    }
    putc('}', f->to);
    if (e->flow != TRACE_FLOW_NONE) {
        put_flow(f, e);
    }
}

static void end(struct trace_file *f)
{
    fputs("\n]}\n", f->to);
}

const struct trace_format trace_chrome = {"chrome", begin, put_track, put_event, end};
