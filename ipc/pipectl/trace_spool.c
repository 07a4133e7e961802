/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pipectl/trace_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "ipc/base64.h"

#define BUFFER_BYTES (1u << 18)

struct head {
    uint32_t is_json, track, bytes;
};

struct trace_spool {
    FILE *file;
    void *part; /* owned */
    size_t room;
    json_t *batch; /* owned */
};

static FILE *open_unnamed(const char *beside)
{
    const char *slash = strrchr(beside, '/');
    char *folder = slash ? strndup(beside, (size_t)(slash - beside) + 1) : strdup(".");
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

    free(folder);
    /* a file system that has no files without names, or a folder like /dev */
    return fd >= 0 ? fdopen(fd, "w+") : tmpfile();
}

struct trace_spool *trace_spool_new(const char *beside)
{
    struct trace_spool *s = calloc(1, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->file = open_unnamed(beside);
    if (!s->file) {
        free(s);
        return NULL;
    }
    setvbuf(s->file, NULL, _IOFBF, BUFFER_BYTES);
    return s;
}

struct trace_spool *trace_spool_free(struct trace_spool *s)
{
    if (s) {
        fclose(s->file);
        json_decref(s->batch);
        free(s->part);
        free(s);
    }
    return NULL;
}

static bool reserve(struct trace_spool *s, size_t bytes)
{
    void *grown;

    if (bytes <= s->room) {
        return true;
    }
    grown = realloc(s->part, bytes);
    if (grown) {
        s->part = grown;
        s->room = bytes;
    }
    return grown != NULL;
}

static int put(struct trace_spool *s, struct head h, const void *data)
{
    errno = 0;
    return fwrite(&h, sizeof(h), 1, s->file) == 1 &&
                   (h.bytes == 0 || fwrite(data, h.bytes, 1, s->file) == 1)
               ? 0
           : errno ? errno
                   : EIO;
}

static int put_records(struct trace_spool *s, const json_t *of)
{
    const json_t *data = json_object_get(of, "data");
    size_t length = json_string_length(data), bytes;

    if (!reserve(s, length / 4 * 3 + 1)) {
        return ENOMEM;
    }
    bytes = ipc_base64_decode(json_is_string(data) ? json_string_value(data) : "=", length, s->part);
    if (bytes == SIZE_MAX) {
        bytes = 1; /* no whole word: counted as what makes no sense when it is converted */
    }
    return put(s,
               (struct head){.track = (uint32_t)json_integer_value(json_object_get(of, "track")),
                             .bytes = (uint32_t)bytes},
               s->part);
}

int trace_spool_add(struct trace_spool *s, const json_t *batch)
{
    json_t *rest = json_copy((json_t *)batch), *records = json_object_get(batch, "records"), *of;
    char *text;
    size_t i;
    int error = ENOMEM;

    json_object_del(rest, "records");
    text = json_dumps(rest, JSON_COMPACT);
    json_decref(rest);
    if (text) {
        error = put(s, (struct head){.is_json = 1, .bytes = (uint32_t)strlen(text)}, text);
    }
    free(text);
    json_array_foreach(records, i, of)
    {
        error = error ? error : put_records(s, of);
    }
    return error;
}

int trace_spool_rewind(struct trace_spool *s)
{
    return fseek(s->file, 0, SEEK_SET) == 0 ? 0 : errno;
}

int trace_spool_next(struct trace_spool *s, struct trace_part *ret)
{
    struct head h;

    if (fread(&h, sizeof(h), 1, s->file) != 1) {
        return ferror(s->file) ? EIO : -1;
    }
    if (!reserve(s, (size_t)h.bytes + 1)) {
        return ENOMEM;
    }
    if (h.bytes > 0 && fread(s->part, h.bytes, 1, s->file) != 1) {
        return EIO;
    }
    json_decref(s->batch);
    s->batch = NULL;
    *ret = (struct trace_part){.track = h.track};
    if (h.is_json) {
        s->batch = json_loadb(s->part, h.bytes, 0, NULL);
        ret->batch = s->batch;
    } else {
        ret->records = s->part;
        ret->count = h.bytes / sizeof(uint32_t);
    }
    return 0;
}
