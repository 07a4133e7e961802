/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: which boards serve which units. */
#include <sodium.h>

#include "base/base.h"
#include "ipc/boards/board_json.h"
#include "ipc/boards/board_state.h"

#define UNIT_MAX 9999999
#define SHARE_MAX 1000
#define DTYPE_MAX 6
#define TENSOR_BYTES_MAX 0x1p40

/* ---- as JSON ---- */

static const struct brd_field dim_field = {NULL, BRD_COUNT, .bytes = sizeof(uint32_t),
                                           .most = UINT32_MAX};
static const struct brd_object dim = {&dim_field, 1, NULL};

static const struct brd_field tensor_fields[] = {
    {"dtype", BRD_COUNT, BRD_AT(brd_tensor, dtype), .least = 1, .most = DTYPE_MAX},
    {"dims", BRD_ITEMS(brd_tensor, dim, rank), .most = BRD_RANK_MAX, .item = &dim},
    {"bytes", BRD_COUNT, BRD_AT(brd_tensor, bytes), .least = 1, .most = TENSOR_BYTES_MAX},
};
static const struct brd_object tensor = {BRD_OBJECT(tensor_fields)};

/* Each board once. */
static bool board_is_valid(const void *boards, size_t i)
{
    const struct brd_hop_board *b = boards;
    bool found = false;

    for (size_t k = 0; k < i; k++) {
        found |= strcmp(b[k].print, b[i].print) == 0;
    }
    return !found;
}

static const struct brd_field board_fields[] = {
    {"board", BRD_PRINT, BRD_AT(brd_hop_board, print)},
    {"share", BRD_COUNT, BRD_AT(brd_hop_board, share), .least = 1, .most = SHARE_MAX},
};
static const struct brd_object board = {BRD_OBJECT(board_fields), board_is_valid};

/* Hop @at begins at the unit behind the last one of the hop before it. */
static bool is_next(const struct brd_hop *hop, size_t at)
{
    return hop[at].first_unit <= hop[at].last_unit &&
           hop[at].first_unit == (at ? hop[at - 1].last_unit + 1 : 0);
}

static bool hop_is_valid(const void *hops, size_t i)
{
    const struct brd_hop *hop = hops;

    return is_next(hop, i) && hop[i].board_count > 0;
}

static const struct brd_field hop_fields[] = {
    {"first_unit", BRD_COUNT, BRD_AT(brd_hop, first_unit), .most = UNIT_MAX},
    {"last_unit", BRD_COUNT, BRD_AT(brd_hop, last_unit), .most = UNIT_MAX},
    {"leaves", BRD_TEXT, BRD_AT(brd_hop, leaves), .may_lack = true},
    {"border", BRD_HASH, BRD_AT(brd_hop, border), .may_lack = true},
    {"primitives", BRD_SHOWN, BRD_AT(brd_hop, primitives), .may_lack = true},
    {"boards", BRD_ITEMS(brd_hop, board, board_count), .most = BRD_SHARE_MAX, .item = &board},
};
static const struct brd_object hop = {BRD_OBJECT(hop_fields), hop_is_valid};

static const struct brd_field route_fields[] = {
    {"model", BRD_TEXT, BRD_AT(brd_route, model)},
    {"content", BRD_TEXT, BRD_AT(brd_route, content)},
    {"number", BRD_COUNT, BRD_AT(brd_route, number), .most = UINT32_MAX},
    {"identity", BRD_HASH, BRD_AT(brd_route, identity)},
    {"path", BRD_TEXT, BRD_AT(brd_route, path)},
    {"preprocess", BRD_SHOWN, BRD_AT(brd_route, preprocess), .may_lack = true},
    {"hops", BRD_ITEMS(brd_route, hop, hop_count), .most = BRD_HOPS_MAX, .item = &hop},
    {"inputs", BRD_ITEMS(brd_route, input, input_count), .most = BRD_TENSORS_MAX, .item = &tensor},
    {"outputs", BRD_ITEMS(brd_route, output, output_count), .most = BRD_TENSORS_MAX,
     .item = &tensor},
};
static const struct brd_object route = {BRD_OBJECT(route_fields)};

static const struct brd_field routes_fields[] = {
    {"routes", BRD_ITEMS(brd_routes, route, count), .most = BRD_ROUTES_MAX, .item = &route},
};
static const struct brd_object routes = {BRD_OBJECT(routes_fields)};

json_t *brd_routes_json(const struct brd_routes *r)
{
    return brd_put(&routes, r);
}

int brd_routes_read(const json_t *j, struct brd_routes *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (!json_is_object(j) || !brd_get(&routes, j, ret)) {
        memset(ret, 0, sizeof(*ret));
        return -EBADMSG;
    }
    return 0;
}

/* ---- as text ---- */

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

int brd_hops_text(const struct brd_hop *of, size_t count, char *ret, size_t bytes)
{
    bool fits = true;

    *ret = '\0';
    for (size_t i = 0; i < count && fits; i++) {
        fits = base_append(ret, bytes, "%s%u-%u@", i ? "|" : "", of[i].first_unit, of[i].last_unit);
        for (size_t b = 0; b < of[i].board_count; b++) {
            fits = base_append(ret, bytes, "%s%s*%u", b ? "+" : "", of[i].board[b].print,
                               of[i].board[b].share);
        }
    }
    return fits ? 0 : -ENOSPC;
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
    struct brd_hop_board *b = &h->board[h->board_count];

    if (h->board_count == BRD_SHARE_MAX) {
        return false;
    }
    snprintf(b->print, sizeof(b->print), "%s", *at);
    if (!brd_is_print(b->print) || !board_is_valid(h->board, h->board_count++)) {
        return false;
    }
    *at += sizeof(b->print) - 1;
    return take(at, '*') && take_number(at, &b->share) && b->share >= 1 && b->share <= SHARE_MAX;
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
        count++;
    } while (take(&at, '|'));
    *ret_count = count;
    return *at ? -EBADMSG : 0;
}
