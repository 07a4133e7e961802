/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: which boards serve which units. */
#include <sodium.h>

#include "base/base.h"
#include "base/json_text.h"
#include "ipc/boards/board_json.h"
#include "ipc/boards/board_state.h"
#include "ipc/boards/board_text.h"

#define UNIT_MAX 9999999
#define SHARE_MAX 1000
#define DTYPE_MAX 6
#define TENSOR_BYTES_MAX ((json_int_t)1 << 40)

static json_t *tensors_json(const struct brd_tensor *t, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *dims = json_array();

        for (size_t k = 0; k < t[i].rank; k++) {
            json_array_append_new(dims, json_integer(t[i].dim[k]));
        }
        json_array_append_new(list, json_pack("{s:I, s:o, s:I}", "dtype", (json_int_t)t[i].dtype,
                                              "dims", dims, "bytes", (json_int_t)t[i].bytes));
    }
    return list;
}

static json_t *hop_json(const struct brd_hop *h)
{
    json_t *boards = json_array();

    for (size_t i = 0; i < h->board_count; i++) {
        json_array_append_new(boards, json_pack("{s:s, s:I}", "board", h->board[i].print, "share",
                                                (json_int_t)h->board[i].share));
    }
    return json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:o}", "first_unit", (json_int_t)h->first_unit,
                     "last_unit", (json_int_t)h->last_unit, "encoding",
                     brd_encoding_name(h->encoding), "leaves", h->leaves, "border", h->border,
                     "primitives", h->primitives, "boards", boards);
}

static json_t *route_json(const struct brd_route *r)
{
    json_t *hops = json_array();

    for (size_t i = 0; i < r->hop_count; i++) {
        json_array_append_new(hops, hop_json(&r->hop[i]));
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:o, s:s, s:o, s:o, s:o}", "model", r->model, "content",
                     r->content, "number", (json_int_t)r->number, "identity", r->identity, "path",
                     json_text_path(r->path), "preprocess", r->preprocess, "hops", hops, "inputs",
                     tensors_json(r->input, r->input_count), "outputs",
                     tensors_json(r->output, r->output_count));
}

json_t *brd_routes_json(const struct brd_routes *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->count; i++) {
        json_array_append_new(list, route_json(&r->route[i]));
    }
    return json_pack("{s:o}", "routes", list);
}

static bool read_tensor(const json_t *j, struct brd_tensor *ret)
{
    const json_t *dims, *v;
    json_int_t dtype, bytes;
    size_t i;

    if (!brd_get_count(j, "dtype", 1, DTYPE_MAX, &dtype) ||
        !brd_get_count(j, "bytes", 1, TENSOR_BYTES_MAX, &bytes) ||
        !brd_get_list(j, "dims", BRD_RANK_MAX, &dims)) {
        return false;
    }
    *ret = (struct brd_tensor){.dtype = (uint32_t)dtype, .bytes = (uint64_t)bytes};
    json_array_foreach(dims, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) > UINT32_MAX) {
            return false;
        }
        ret->dim[ret->rank++] = (uint32_t)json_integer_value(v);
    }
    return true;
}

static bool read_tensors(const json_t *j, const char *key, struct brd_tensor *ret,
                         size_t *ret_count)
{
    const json_t *list, *v;
    size_t i;

    if (!brd_get_list(j, key, BRD_TENSORS_MAX, &list)) {
        return false;
    }
    json_array_foreach(list, i, v)
    {
        if (!read_tensor(v, &ret[(*ret_count)++])) {
            return false;
        }
    }
    return true;
}

static bool is_named_before(const struct brd_hop *h, const char *print)
{
    for (size_t i = 0; i < h->board_count; i++) {
        if (strcmp(h->board[i].print, print) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_board(struct brd_hop *h, const char *print, json_int_t share)
{
    if (h->board_count == BRD_SHARE_MAX || !brd_is_print(print) || is_named_before(h, print) ||
        share < 1 || share > SHARE_MAX) {
        return false;
    }
    memcpy(h->board[h->board_count].print, print, BRD_FINGERPRINT_BYTES);
    h->board[h->board_count++].share = (uint32_t)share;
    return true;
}

static bool is_next(const struct brd_hop *hop, size_t at)
{
    return hop[at].first_unit <= hop[at].last_unit &&
           hop[at].first_unit == (at ? hop[at - 1].last_unit + 1 : 0);
}

static bool read_encoding(const json_t *j, enum brd_encoding *ret)
{
    const json_t *v = json_object_get(j, "encoding");

    *ret = BRD_AS_IS;
    return !v || (json_is_string(v) && brd_encoding_find(json_string_value(v), ret));
}

static bool read_border(const json_t *j, char ret[BRD_KEY_TEXT_BYTES])
{
    uint8_t border[BRD_KEY_BYTES];

    return brd_get_optional_text(j, "border", ret, BRD_KEY_TEXT_BYTES) &&
           (!*ret || brd_key_from_text(ret, border));
}

static bool read_hop(const json_t *j, struct brd_hop *ret)
{
    const json_t *boards, *v;
    json_int_t first, last, share;
    size_t i;

    if (!brd_get_count(j, "first_unit", 0, UNIT_MAX, &first) ||
        !brd_get_count(j, "last_unit", first, UNIT_MAX, &last) ||
        !read_encoding(j, &ret->encoding) ||
        !brd_get_optional_text(j, "leaves", ret->leaves, sizeof(ret->leaves)) ||
        !brd_get_optional_text(j, "primitives", ret->primitives, sizeof(ret->primitives)) ||
        !brd_is_shown(ret->primitives) || !read_border(j, ret->border) ||
        !brd_get_list(j, "boards", BRD_SHARE_MAX, &boards) || json_array_size(boards) == 0) {
        return false;
    }
    ret->first_unit = (uint32_t)first;
    ret->last_unit = (uint32_t)last;
    json_array_foreach(boards, i, v)
    {
        char print[BRD_FINGERPRINT_BYTES];

        if (!brd_get_print(v, "board", false, print) ||
            !brd_get_count(v, "share", 1, SHARE_MAX, &share) || !add_board(ret, print, share)) {
            return false;
        }
    }
    return true;
}

static bool is_identity(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool read_route(const json_t *j, struct brd_route *ret)
{
    const json_t *hops, *v;
    json_int_t number;
    size_t i;

    if (!brd_get_text(j, "model", ret->model, sizeof(ret->model)) ||
        !brd_get_text(j, "content", ret->content, sizeof(ret->content)) ||
        !brd_get_count(j, "number", 0, UINT32_MAX, &number) ||
        !brd_get_text(j, "identity", ret->identity, sizeof(ret->identity)) ||
        !is_identity(ret->identity) || !brd_get_text(j, "path", ret->path, sizeof(ret->path)) ||
        !brd_get_optional_text(j, "preprocess", ret->preprocess, sizeof(ret->preprocess)) ||
        !brd_is_shown(ret->preprocess) || !brd_get_list(j, "hops", BRD_HOPS_MAX, &hops)) {
        return false;
    }
    ret->number = (uint32_t)number;
    json_array_foreach(hops, i, v)
    {
        if (!read_hop(v, &ret->hop[i]) || !is_next(ret->hop, i)) {
            return false;
        }
        ret->hop_count++;
    }
    return read_tensors(j, "inputs", ret->input, &ret->input_count) &&
           read_tensors(j, "outputs", ret->output, &ret->output_count);
}

int brd_routes_read(const json_t *j, struct brd_routes *ret)
{
    const json_t *list, *v;
    size_t i;

    memset(ret, 0, sizeof(*ret));
    if (!json_is_object(j) || !brd_get_list(j, "routes", BRD_ROUTES_MAX, &list)) {
        return -EBADMSG;
    }
    json_array_foreach(list, i, v)
    {
        if (!read_route(v, &ret->route[i])) {
            memset(ret, 0, sizeof(*ret));
            return -EBADMSG;
        }
        ret->count++;
    }
    return 0;
}

void brd_border_text(const char *front, const char *back, char ret[BRD_KEY_TEXT_BYTES])
{
    crypto_generichash_state s;
    uint8_t hash[BRD_KEY_BYTES];

    crypto_generichash_init(&s, NULL, 0, sizeof(hash));
    crypto_generichash_update(&s, (const uint8_t *)front, strlen(front) + 1);
    crypto_generichash_update(&s, (const uint8_t *)back, strlen(back) + 1);
    crypto_generichash_final(&s, hash, sizeof(hash));
    brd_key_text(hash, ret);
}

int brd_hops_text(const struct brd_hop *hop, size_t count, char *ret, size_t bytes)
{
    size_t at = 0;

    *ret = '\0';
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(ret + at, bytes - at, "%s%u-%u@", i ? "|" : "", hop[i].first_unit,
                               hop[i].last_unit);
        for (size_t b = 0; b < hop[i].board_count && at < bytes; b++) {
            at += (size_t)snprintf(ret + at, bytes - at, "%s%s*%u", b ? "+" : "",
                                   hop[i].board[b].print, hop[i].board[b].share);
        }
        if (at < bytes && hop[i].encoding != BRD_AS_IS) {
            at += (size_t)snprintf(ret + at, bytes - at, ":%s", brd_encoding_name(hop[i].encoding));
        }
        if (at >= bytes) {
            return -ENOSPC;
        }
    }
    return 0;
}

/* A number in decimal of at most 7 digits, without a leading zero. */
static bool take_number(const char **at, uint32_t *ret)
{
    const char *p = *at;
    uint32_t n = 0;

    while (*p >= '0' && *p <= '9' && p - *at < 7) {
        n = n * 10 + (uint32_t)(*p++ - '0');
    }
    if (p == *at || (**at == '0' && p - *at > 1)) {
        return false;
    }
    *at = p;
    *ret = n;
    return true;
}

static bool take(const char **at, char c)
{
    return **at == c ? (++*at, true) : false;
}

static bool take_board(const char **at, struct brd_hop *h)
{
    char print[BRD_FINGERPRINT_BYTES];
    uint32_t share;

    snprintf(print, sizeof(print), "%s", *at);
    if (!brd_is_print(print)) {
        return false;
    }
    *at += sizeof(print) - 1;
    return take(at, '*') && take_number(at, &share) && add_board(h, print, share);
}

static bool take_encoding(const char **at, enum brd_encoding *ret)
{
    char name[8] = "";
    size_t n;

    if (!take(at, ':')) {
        return true;
    }
    n = strcspn(*at, "|");
    if (n >= sizeof(name)) {
        return false;
    }
    memcpy(name, *at, n);
    *at += n;
    return brd_encoding_find(name, ret) && *ret != BRD_AS_IS;
}

int brd_hops_parse(const char *text, struct brd_hop ret[BRD_HOPS_MAX], size_t *ret_count)
{
    const char *at = text;
    size_t count = 0;

    do {
        struct brd_hop *h = &ret[count];

        if (count == BRD_HOPS_MAX) {
            return -EBADMSG;
        }
        memset(h, 0, sizeof(*h));
        if (!take_number(&at, &h->first_unit) || !take(&at, '-') ||
            !take_number(&at, &h->last_unit) || !take(&at, '@') || !is_next(ret, count)) {
            return -EBADMSG;
        }
        do {
            if (!take_board(&at, h)) {
                return -EBADMSG;
            }
        } while (take(&at, '+'));
        if (!take_encoding(&at, &h->encoding)) {
            return -EBADMSG;
        }
        count++;
    } while (take(&at, '|'));
    *ret_count = count;
    return *at ? -EBADMSG : 0;
}
