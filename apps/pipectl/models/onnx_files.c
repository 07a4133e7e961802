/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl does not know models, but must send all files of one: walks an ONNX file as protobuf,
 * down to the entries "location" of tensors' external_data. Field numbers are those of
 * onnx.proto. The daemon judges the file; here, what makes no sense ends the walk. */
#include "apps/pipectl/models/models.h"
#include "base/whole_file.h"

#define DEPTH_MAX 64u
#define LOCATION_MAX 1024u
#define WINDOW_BYTES 65536u

enum kind {
    LEAF,
    MODEL,
    GRAPH,
    FUNCTION,
    NODE,
    ATTRIBUTE,
    SPARSE,
    TENSOR,
    ENTRY,
};

/* Which fields lead to tensors. */
static const struct {
    uint8_t in, field, to;
} ways[] = {
    {MODEL, 7, GRAPH},       {MODEL, 25, FUNCTION},  {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},      {GRAPH, 15, SPARSE},    {FUNCTION, 7, NODE},
    {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 5, TENSOR}, {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 11, GRAPH}, {ATTRIBUTE, 22, SPARSE},
    {ATTRIBUTE, 23, SPARSE}, {SPARSE, 1, TENSOR},    {SPARSE, 2, TENSOR},
    {TENSOR, 13, ENTRY},
};

struct walk {
    int fd, error; /* -errno of a read */
    uint64_t at, from;
    size_t have; /* bytes of window[], which are at `from` */
    int (*found)(void *ctx, const char *name);
    void *ctx;
    uint8_t window[WINDOW_BYTES];
};

static bool fill(struct walk *w)
{
    ssize_t n = whole_file_part(w->fd, w->at, w->window, sizeof(w->window));

    w->error = n < 0 ? (int)n : 0;
    w->from = w->at;
    w->have = n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool get_byte(struct walk *w, uint64_t end, uint8_t *ret)
{
    if (w->at >= end || ((w->at < w->from || w->at - w->from >= w->have) && !fill(w))) {
        return false;
    }
    *ret = w->window[w->at++ - w->from];
    return true;
}

static bool get_varint(struct walk *w, uint64_t end, uint64_t *ret)
{
    uint64_t v = 0;
    uint8_t byte = 0x80;

    for (unsigned shift = 0; shift < 64 && (byte & 0x80); shift += 7) {
        if (!get_byte(w, end, &byte)) {
            return false;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
    }
    *ret = v;
    return !(byte & 0x80);
}

/* Reads a field's head and skips its value, unless it has a length. Return: 1: it has: the value is
 * at w->at, up to *ret_end; 0: it was skipped; -1: no more fields. */
static int next_field(struct walk *w, uint64_t end, uint64_t *ret_field, uint64_t *ret_end)
{
    uint64_t head, value = 0, skip = 0;

    if (!get_varint(w, end, &head)) {
        return -1;
    }
    *ret_field = head >> 3;
    switch (head & 7) {
    case 0:
        return get_varint(w, end, &value) ? 0 : -1;
    case 1:
        skip = 8;
        break;
    case 5:
        skip = 4;
        break;
    case 2:
        if (!get_varint(w, end, &value) || value > end - w->at) {
            return -1;
        }
        *ret_end = w->at + value;
        return 1;
    default:
        return -1;
    }
    if (skip > end - w->at) {
        return -1;
    }
    w->at += skip;
    return 0;
}

static bool get_text(struct walk *w, uint64_t end, char ret[LOCATION_MAX])
{
    size_t n = 0;
    uint8_t byte;

    while (n + 1 < LOCATION_MAX && get_byte(w, end, &byte)) {
        ret[n++] = (char)byte;
    }
    ret[n] = '\0';
    return w->at == end;
}

/* An entry of external_data: key and value. */
static int read_entry(struct walk *w, uint64_t end)
{
    char key[LOCATION_MAX] = "", value[LOCATION_MAX] = "";
    uint64_t field, part_end;
    int r;

    while ((r = next_field(w, end, &field, &part_end)) >= 0) {
        if (r == 1 && (field == 1 || field == 2) &&
            !get_text(w, part_end, field == 1 ? key : value)) {
            return 0;
        }
        if (r == 1) {
            w->at = part_end;
        }
    }
    return strcmp(key, "location") == 0 ? w->found(w->ctx, value) : 0;
}

static enum kind way(enum kind in, uint64_t field)
{
    for (size_t i = 0; i < base_array_count(ways); i++) {
        if (ways[i].in == in && ways[i].field == field) {
            return ways[i].to;
        }
    }
    return LEAF;
}

/* Return: 0; what found() returned. */
static int walk(struct walk *w, uint64_t bytes, enum kind kind)
{
    struct {
        uint64_t end;
        enum kind kind;
    } stack[DEPTH_MAX] = {{bytes, kind}};
    size_t depth = 1;
    int r = 0;

    while (depth > 0 && r == 0) {
        uint64_t field, end;
        enum kind to;
        int has = next_field(w, stack[depth - 1].end, &field, &end);

        if (has < 0) {
            w->at = stack[--depth].end;
            continue;
        }
        if (has == 0) {
            continue;
        }
        to = way(stack[depth - 1].kind, field);
        if (to == ENTRY) {
            r = read_entry(w, end);
        }
        if (to == LEAF || to == ENTRY || depth == DEPTH_MAX) {
            w->at = end;
        } else {
            stack[depth].end = end;
            stack[depth++].kind = to;
        }
    }
    return r;
}

int ctl_onnx_files(int fd, int (*found)(void *ctx, const char *name), void *ctx)
{
    struct walk w = {.fd = fd, .found = found, .ctx = ctx};
    struct stat st;
    int r;

    if (fstat(fd, &st) < 0) {
        return -errno;
    }
    r = walk(&w, (uint64_t)st.st_size, MODEL);
    return r ? r : w.error;
}
