/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/trace/file.h"

#include "base/base.h"

#define BUFFER_BYTES (1u << 20)

static bool grow(void **array, size_t *room, size_t count, size_t bytes)
{
    size_t more = *room ? 2 * *room : 64;
    void *grown;

    if (count < *room) {
        return true;
    }
    grown = realloc(*array, more * bytes);
    if (!grown) {
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

uint32_t trace_name(struct trace_file *f, const char *text)
{
    for (size_t i = 1; i < f->name_count; i++) {
        if (strcmp(f->names[i], text) == 0) {
            return (uint32_t)i;
        }
    }
    if (!grow((void **)&f->names, &f->name_room, f->name_count, sizeof(f->names[0])) ||
        !(f->names[f->name_count] = strdup(text))) {
        f->error = ENOMEM;
        return 0;
    }
    return (uint32_t)f->name_count++;
}

uint32_t trace_add_track(struct trace_file *f, const struct trace_track *is)
{
    struct trace_known_track *t;

    if (!grow((void **)&f->tracks, &f->track_room, f->track_count, sizeof(f->tracks[0]))) {
        f->error = ENOMEM;
        return 0;
    }
    t = &f->tracks[f->track_count];
    *t = (struct trace_known_track){.is = *is};
    t->is.name = strdup(is->name);
    t->is.unit = strdup(is->unit ? is->unit : "");
    if (!t->is.name || !t->is.unit) {
        free((char *)t->is.name);
        free((char *)t->is.unit);
        f->error = ENOMEM;
        return 0;
    }
    trace_perfetto_track(f, (uint32_t)f->track_count);
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
    if (t->is.kind == TRACE_SLICES) {
        now.at_ns = base_max(e->at_ns, t->last_ns);
        if (!t->begun) {
            t->last_ns = now.at_ns;
        }
    }
    trace_perfetto_event(f, &now);
    t->begun = true;
    t->last_ns = now.at_ns;
    f->events++;
}

static struct trace_file *none(struct trace_file *f, int error)
{
    if (f->to) {
        fclose(f->to);
    }
    free(f->tracks);
    free(f->names);
    free(f);
    errno = error;
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
    if (!grow((void **)&f->tracks, &f->track_room, 0, sizeof(f->tracks[0])) ||
        !grow((void **)&f->names, &f->name_room, 0, sizeof(f->names[0]))) {
        return none(f, ENOMEM);
    }
    f->tracks[0] = (struct trace_known_track){0};
    f->names[0] = NULL;
    f->track_count = f->name_count = 1;
    f->to = fopen(path, "we");
    if (!f->to) {
        return none(f, errno);
    }
    setvbuf(f->to, NULL, _IOFBF, BUFFER_BYTES);
    trace_perfetto_begin(f);
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
    for (size_t i = 0; i < f->track_count; i++) {
        free((char *)f->tracks[i].is.name);
        free((char *)f->tracks[i].is.unit);
        free(f->tracks[i].names);
    }
    for (size_t i = 0; i < f->name_count; i++) {
        free(f->names[i]);
    }
    free(f->tracks);
    free(f->names);
    free(f);
    return error;
}
