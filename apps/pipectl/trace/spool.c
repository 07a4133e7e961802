/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as it comes, in temporary files. */
#include <endian.h>
#include <sys/socket.h>

#include "apps/pipectl/trace/trace.h"

#define READ_BYTES (1u << 18)

struct trace_spool {
    FILE *batches; /* lines of JSON */
    FILE *records; /* as they came */
    char *read;    /* owned; READ_BYTES */
    json_t *batch; /* owned; the newest that was given out */
    uint32_t *block;
    size_t room; /* words of block */
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
    int error;

    if (!s) {
        return NULL;
    }
    s->batches = open_unnamed(beside);
    s->records = s->batches ? open_unnamed(beside) : NULL;
    s->read = malloc(READ_BYTES);
    if (!s->records || !s->read) {
        error = errno;
        trace_spool_free(s);
        errno = error;
        return NULL;
    }
    return s;
}

struct trace_spool *trace_spool_free(struct trace_spool *s)
{
    if (s) {
        if (s->batches) {
            fclose(s->batches);
        }
        if (s->records) {
            fclose(s->records);
        }
        json_decref(s->batch);
        free(s->read);
        free(s->block);
        free(s);
    }
    return NULL;
}

int trace_spool_add(struct trace_spool *s, const json_t *batch)
{
    errno = 0;
    return json_dumpf(batch, s->batches, JSON_COMPACT) == 0 && putc('\n', s->batches) != EOF ? 0
           : errno                                                                           ? errno
                                                                                             : EIO;
}

int trace_spool_receive(struct trace_spool *s, int sock, bool *ret_end)
{
    ssize_t n;

    *ret_end = false;
    while ((n = recv(sock, s->read, READ_BYTES, MSG_DONTWAIT)) > 0) {
        if (fwrite(s->read, 1, (size_t)n, s->records) != (size_t)n) {
            return errno;
        }
    }
    *ret_end = n == 0 || (errno != EAGAIN && errno != EINTR);
    return 0;
}

int trace_spool_rewind(struct trace_spool *s)
{
    return fseek(s->batches, 0, SEEK_SET) == 0 && fseek(s->records, 0, SEEK_SET) == 0 ? 0 : errno;
}

const json_t *trace_spool_batch(struct trace_spool *s)
{
    json_decref(s->batch);
    s->batch = json_loadf(s->batches, JSON_DISABLE_EOF_CHECK, NULL);
    return s->batch;
}

size_t trace_spool_records(struct trace_spool *s, uint32_t *ret_track, const uint32_t **ret)
{
    uint32_t head[2];
    size_t words;

    if (fread(head, sizeof(head), 1, s->records) != 1) {
        return 0;
    }
    *ret_track = le32toh(head[0]);
    words = le32toh(head[1]);
    if (!base_room_for(&s->block, sizeof(s->block[0]), words, &s->room)) {
        return 0;
    }
    *ret = s->block;
    /* of a daemon that died, the last block may be short */
    return fread(s->block, sizeof(s->block[0]), words, s->records);
}
