/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/external.h"

#include "model/common/weight_files.h"
#include "onnx.pb-c.h"

struct place {
    const char *location, *offset, *length; /* NULL: not given */
};

/* Other keys (a checksum, the writer's own) say nothing about where the data is. */
static const char *read_entries(const Onnx__TensorProto *t, struct place *p)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = mdl_onnx_text(t->external_data[i]->key);
        const char **to = strcmp(key, "location") == 0 ? &p->location
                          : strcmp(key, "offset") == 0 ? &p->offset
                          : strcmp(key, "length") == 0 ? &p->length
                                                       : NULL;

        if (to && *to) {
            return "external_data gives a key twice";
        }
        if (to) {
            *to = mdl_onnx_text(t->external_data[i]->value);
        }
    }
    return p->location && p->location[0] ? NULL : "external_data has no location";
}

/* A decimal number without sign. */
static bool read_size(const char *text, size_t *ret)
{
    size_t v = 0;

    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s > '9' || !base_mul(v, 10, &v) || !base_add(v, (size_t)(*s - '0'), &v)) {
            return false;
        }
    }
    *ret = v;
    return text[0] != '\0';
}

int mdl_onnx_external(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, size_t want,
                      char *why, size_t why_bytes, const void **ret)
{
    struct mdl_map_range map = {0};
    struct place p = {0};
    size_t offset = 0, length = want, end, mapped;
    const char *wrong = read_entries(t, &p);
    char error[MDL_ERROR_MAX] = "";
    int r;

    if (!wrong && ((p.offset && !read_size(p.offset, &offset)) ||
                   (p.length && !read_size(p.length, &length)))) {
        wrong = "external_data's offset or length is not a number";
    }
    if (!wrong && length != want) {
        snprintf(why, why_bytes, "external_data has %zu bytes where its shape needs %zu", length,
                 want);
        return -EBADMSG;
    }
    if (wrong) {
        snprintf(why, why_bytes, "%s", wrong);
        return -EBADMSG;
    }
    if (!rd->data) {
        snprintf(why, why_bytes, "its data is in another file, which cannot be read here");
        return -EOPNOTSUPP;
    }
    mapped = rd->data->bytes;
    r = mdl_data_file_map(rd->data, p.location, error, &map);
    if (r < 0) {
        snprintf(why, why_bytes, "external data: %s", error);
        return r;
    }
    /* as for the model's file: 16 bit weights double when they are converted */
    mdl_pool_allow(rd->graph->pool, 2 * (rd->data->bytes - mapped));
    rd->graph->data_bytes = rd->data->bytes;
    if (!base_add(offset, length, &end) || end > map.bytes) {
        snprintf(why, why_bytes, "external data: %.100s has %zu bytes; %zu from byte %zu are meant",
                 p.location, map.bytes, length, offset);
        return -EBADMSG;
    }
    *ret = want > 0 ? (const char *)map.data + offset : "";
    return 0;
}
