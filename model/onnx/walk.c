/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/walk.h"

#include <setjmp.h>

#include "base/base.h"
#include "base/shown_text.h"
#include "model/common/private.h"

/* ---- wire format ---- */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

struct piece {         /* one field of a message */
    size_t start, end; /* with its tag, offsets in the file */
    uint64_t number;
    enum wire wire;
    size_t body, bytes; /* the value without tag and length */
};

struct frame { /* where we are, for messages */
    enum mdl_onnx_msg msg;
    size_t start, end; /* of the message's body in the file */
    const struct frame *parent;
    const char *name; /* NULL at the root */
    size_t index;
    size_t depth;
};

struct walker {
    const unsigned char *in;
    size_t in_bytes;
    struct mdl_walk *w;
    size_t copy_cap, raw_cap;
    size_t messages, strings, pieces;
    char *error;
    jmp_buf leave; /* where a failure goes on ... */
    int failure;   /* ... with this code */
};

/* Return: false past the end, past ten bytes, or past 64 bits. */
static bool varint_read(const struct walker *wk, size_t *at, size_t end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char c;

        if (*at >= end) {
            return false;
        }
        c = wk->in[(*at)++];
        if (shift == 63 && c > 1) {
            return false;
        }
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* Return: NULL and *ret, or what is wrong with the field at @at. */
static const char *piece_read(const struct walker *wk, size_t at, size_t end, struct piece *ret)
{
    uint64_t tag, length;
    struct piece p = {.start = at};

    if (!varint_read(wk, &at, end, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return "broken or truncated field tag";
    }
    p.number = tag >> 3;
    p.wire = (enum wire)(tag & 7);
    p.body = at;
    switch (p.wire) {
    case WIRE_VARINT:
        if (!varint_read(wk, &at, end, &length)) {
            return "broken or truncated number";
        }
        break;
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        length = p.wire == WIRE_FIXED64 ? 8 : 4;
        if (end - at < length) {
            return "truncated number";
        }
        at += length;
        break;
    case WIRE_LENGTH:
        if (!varint_read(wk, &at, end, &length)) {
            return "broken or truncated length";
        }
        if (length > end - at) {
            return "a field is longer than what is left of its message (truncated file?)";
        }
        p.body = at;
        at += length;
        break;
    default:
        return "unknown wire type";
    }
    p.end = at;
    p.bytes = at - p.body;
    *ret = p;
    return NULL;
}

/* The field that names a message of this kind, 0 for none. */
static unsigned name_field(enum mdl_onnx_msg msg)
{
    return msg == MDL_MSG_NODE                           ? 3
           : msg == MDL_MSG_TENSOR                       ? 8
           : msg == MDL_MSG_ATTR || msg == MDL_MSG_VALUE ? 1
                                                         : 0;
}

/* "graph.node[12] 'conv1'.attribute[0] 'pads'": the way to @f, with the names that can be found. */
static void place_of(const struct walker *wk, const struct frame *f, char *text, size_t bytes)
{
    size_t at;

    if (!f || !f->name) {
        snprintf(text, bytes, "%s", f ? "" : "model");
        return;
    }
    place_of(wk, f->parent, text, bytes);
    base_append(text, bytes, "%s%s[%zu]", text[0] ? "." : "", f->name, f->index);
    for (at = f->start; name_field(f->msg) && at < f->end;) {
        struct piece p;

        if (piece_read(wk, at, f->end, &p)) {
            break;
        }
        if (p.number == name_field(f->msg) && p.wire == WIRE_LENGTH) {
            base_append(text, bytes, " '%.*s'", (int)base_min(p.bytes, (size_t)60),
                        (const char *)wk->in + p.body);
            break;
        }
        at = p.end;
    }
}

static _Noreturn void walk_fail(struct walker *wk, const struct frame *f, int code,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

static void walk_fail(struct walker *wk, const struct frame *f, int code, const char *format, ...)
{
    char place[240], why[240];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    place_of(wk, f, place, sizeof(place));
    wk->failure = mdl_fail(wk->error, code, "%s%s%s", place, place[0] ? ": " : "", why);
    longjmp(wk->leave, 1);
}

static struct piece piece_next(struct walker *wk, const struct frame *f, size_t at, size_t end)
{
    struct piece p;
    const char *why = piece_read(wk, at, end, &p);

    if (why && !f->name) { /* not one field of a model could be read up to here, or the file ends */
        walk_fail(wk, f, -EBADMSG,
                  "not an ONNX file, or a damaged one: %s at byte %zu, where a field of a "
                  "model (protobuf) is expected",
                  why, at);
    }
    if (why) {
        walk_fail(wk, f, -EBADMSG, "%s at byte %zu", why, at);
    }
    return p;
}

/* ---- the copy ---- */

static void copy_bytes(struct walker *wk, const struct frame *f, const void *data, size_t bytes)
{
    struct mdl_walk *w = wk->w;

    if (bytes > MDL_WALK_COPY_MAX - w->copy_bytes) {
        walk_fail(wk, f, -E2BIG, "the model's structure is larger than %zu MiB",
                  MDL_WALK_COPY_MAX >> 20);
    }
    if (!base_room_for(&w->copy, 1, base_max(w->copy_bytes + bytes, (size_t)65536),
                       &wk->copy_cap)) {
        walk_fail(wk, f, -ENOMEM, "out of memory");
    }
    memcpy(w->copy + w->copy_bytes, data, bytes);
    w->copy_bytes += bytes;
}

static void copy_raw(struct walker *wk, const struct frame *f, const struct piece *p, bool floats)
{
    struct mdl_walk *w = wk->w;
    unsigned char out[6] = {9 << 3 | WIRE_LENGTH, 4};
    uint32_t index = (uint32_t)w->raw_count;

    if (p->bytes == 0) {
        return; /* as if it were absent */
    }
    if (!base_room(&w->raws, sizeof(*w->raws), w->raw_count, &wk->raw_cap)) {
        walk_fail(wk, f, -ENOMEM, "out of memory");
    }
    w->raws[w->raw_count++] =
        (struct mdl_walk_raw){.offset = p->body, .bytes = p->bytes, .floats = floats};
    memcpy(out + 2, &index, sizeof(index));
    copy_bytes(wk, f, out, sizeof(out));
}

/* ---- the walk ---- */

static bool text_ok(const unsigned char *s, size_t n, bool name)
{
    return name ? shown_ok(s, n) : !memchr(s, 0, n);
}

static bool wire_fits(enum mdl_onnx_kind kind, enum wire wire)
{
    switch (kind) {
    case MDL_FIELD_VARINT:
        return wire == WIRE_VARINT;
    case MDL_FIELD_FIXED32:
        return wire == WIRE_FIXED32;
    case MDL_FIELD_VARINTS:
        return wire == WIRE_VARINT || wire == WIRE_LENGTH;
    case MDL_FIELD_FIXED32S:
    case MDL_FIELD_FLOATS:
        return wire == WIRE_FIXED32 || wire == WIRE_LENGTH;
    case MDL_FIELD_FIXED64S:
        return wire == WIRE_FIXED64 || wire == WIRE_LENGTH;
    default:
        return wire == WIRE_LENGTH;
    }
}

/* Counts the pieces that hold data of a tensor in float_data and raw_data: only a single packed one
 * can go to the table; the reader refuses a tensor that has both. */
static size_t count_floats(struct walker *wk, const struct frame *f, size_t at, size_t end)
{
    size_t count = 0;

    while (at < end) {
        struct piece p = piece_next(wk, f, at, end);

        count += (p.number == 4 || p.number == 9) && p.bytes > 0;
        at = p.end;
    }
    return count;
}

static void walk_message(struct walker *wk, const struct frame *f, enum mdl_onnx_msg msg, size_t at,
                         size_t end, bool copy);

/* Begins a message in the copy. Its length is filled in afterwards: always five bytes, which
 * protobuf-c reads. Return: where its body begins. */
static size_t begin_message(struct walker *wk, const struct frame *f, uint64_t number)
{
    unsigned char head[7];
    size_t tag_bytes = 0;
    uint32_t tag = (uint32_t)number << 3 | WIRE_LENGTH;

    while (tag >= 0x80) {
        head[tag_bytes++] = (unsigned char)(tag | 0x80);
        tag >>= 7;
    }
    head[tag_bytes++] = (unsigned char)tag;
    memset(head + tag_bytes, 0, 5);
    copy_bytes(wk, f, head, tag_bytes + 5);
    return wk->w->copy_bytes;
}

static void end_message(struct walker *wk, size_t at)
{
    size_t length = wk->w->copy_bytes - at;

    for (size_t i = 0; i < 5; i++) {
        wk->w->copy[at - 5 + i] = (unsigned char)((length >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
    }
}

static void walk_sub(struct walker *wk, const struct frame *f, const struct mdl_onnx_field *field,
                     const struct piece *p, size_t index, bool copy)
{
    struct frame inner = {.parent = f,
                          .name = field->name,
                          .index = index,
                          .depth = f->depth + 1,
                          .msg = field->sub,
                          .start = p->body,
                          .end = p->end};
    bool wrapped = field->kind == MDL_FIELD_WRAP;
    size_t at, outer = 0;

    if (inner.depth > MDL_WALK_DEPTH_MAX) {
        walk_fail(wk, NULL, -E2BIG, "messages are nested deeper than %u (byte %zu)",
                  MDL_WALK_DEPTH_MAX, p->start);
    }
    if (!copy) {
        walk_message(wk, &inner, field->sub, p->body, p->end, false);
        return;
    }
    if (++wk->messages > MDL_WALK_MESSAGES_MAX) {
        walk_fail(wk, &inner, -E2BIG, "more than %u nodes, attributes, tensors and values",
                  MDL_WALK_MESSAGES_MAX);
    }
    if (wrapped) { /* NodeProto: doc_string is 6, attribute is 5 */
        static const char mark[] = {6 << 3 | WIRE_LENGTH, 1, MDL_WRAP_MARK[0]};

        outer = begin_message(wk, f, field->as);
        copy_bytes(wk, f, mark, sizeof(mark));
    }
    at = begin_message(wk, f, wrapped ? 5 : p->number);
    walk_message(wk, &inner, field->sub, p->body, p->end, true);
    end_message(wk, at);
    if (wrapped) {
        end_message(wk, outer);
    }
}

/* A field, perhaps with another number in the copy. */
static void copy_field(struct walker *wk, const struct frame *f, unsigned as, const struct piece *p)
{
    if (as) {
        size_t at = begin_message(wk, f, as);

        copy_bytes(wk, f, wk->in + p->body, p->bytes);
        end_message(wk, at);
    } else {
        copy_bytes(wk, f, wk->in + p->start, p->end - p->start);
    }
}

static void walk_field(struct walker *wk, const struct frame *f, const struct mdl_onnx_field *field,
                       const struct piece *p, size_t index, bool floats_to_table)
{
    const unsigned char *body = wk->in + p->body;

    switch (field->kind) {
    case MDL_FIELD_NAME:
        if (++wk->strings > MDL_WALK_STRINGS_MAX || p->bytes > MDL_WALK_NAME_MAX) {
            walk_fail(wk, f, -E2BIG, "%s is too long or there are too many names", field->name);
        }
        if (!text_ok(body, p->bytes, true)) {
            walk_fail(wk, f, -EBADMSG,
                      "%s (byte %zu) is not UTF-8 text, or holds a character that cannot be seen",
                      field->name, p->body);
        }
        break;
    case MDL_FIELD_BYTES:
        if (++wk->strings > MDL_WALK_STRINGS_MAX) {
            walk_fail(wk, f, -E2BIG, "there are too many strings");
        }
        if (!text_ok(body, p->bytes, false)) {
            walk_fail(wk, f, -EBADMSG, "%s holds a NUL byte", field->name);
        }
        break;
    case MDL_FIELD_NOTE:
        if (p->bytes > MDL_WALK_NOTE_MAX || !text_ok(body, p->bytes, false)) {
            return;
        }
        break;
    case MDL_FIELD_RAW:
        copy_raw(wk, f, p, false);
        return;
    case MDL_FIELD_FLOATS:
        if (floats_to_table && p->wire == WIRE_LENGTH) {
            copy_raw(wk, f, p, true);
            return;
        }
        break;
    case MDL_FIELD_MSG:
    case MDL_FIELD_WRAP:
    case MDL_FIELD_CHECK:
        walk_sub(wk, f, field, p, index, field->kind != MDL_FIELD_CHECK);
        return;
    case MDL_FIELD_REFUSE:
        walk_fail(wk, f, -EOPNOTSUPP, "%s is not supported", field->name);
    default:
        break;
    }
    copy_field(wk, f, field->as, p);
}

static void walk_message(struct walker *wk, const struct frame *f, enum mdl_onnx_msg msg, size_t at,
                         size_t end, bool copy)
{
    size_t seen[MDL_FIELD_NUMBER_MAX + 1] = {0};
    size_t floats = msg == MDL_MSG_TENSOR && copy ? count_floats(wk, f, at, end) : 0;

    while (at < end) {
        const struct mdl_onnx_field *field;
        struct piece p = piece_next(wk, f, at, end);

        if (++wk->pieces > MDL_WALK_FIELDS_MAX) {
            walk_fail(wk, NULL, -E2BIG, "more than %u fields", MDL_WALK_FIELDS_MAX);
        }
        at = p.end;
        field = mdl_onnx_field(msg, p.number);
        if (!field) {
            continue; /* documentation, fields of later versions */
        }
        if (!wire_fits(field->kind, p.wire)) {
            walk_fail(wk, f, -EBADMSG, "%s has wire type %u (byte %zu)", field->name,
                      (unsigned)p.wire, p.start);
        }
        if (field->once && seen[p.number]) {
            walk_fail(wk, f, -EBADMSG, "%s is given twice", field->name);
        }
        if (copy) {
            walk_field(wk, f, field, &p, seen[p.number], floats == 1);
        } else if (field->sub != MDL_MSG_NONE) {
            walk_sub(wk, f, field, &p, seen[p.number], false);
        }
        seen[p.number]++;
    }
}

/* Return: 0, or what the walk leaves with. */
static int try_model(struct walker *wk)
{
    struct frame root = {0};

    if (setjmp(wk->leave) == 0) {
        walk_message(wk, &root, MDL_MSG_MODEL, 0, wk->in_bytes, true);
    }
    return wk->failure;
}

int mdl_walk_init(struct mdl_walk *w, const void *map, size_t bytes, char ret_error[MDL_ERROR_MAX])
{
    struct walker wk = {.in = map, .in_bytes = bytes, .w = w, .error = ret_error};

    *w = MDL_WALK_NULL;
    return try_model(&wk);
}

void mdl_walk_deinit(struct mdl_walk *w)
{
    free(w->copy);
    free(w->raws);
    *w = MDL_WALK_NULL;
}
