/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/route_fill.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/leaves/leaves.h"
#include "daemon/config/config.h"
#include "daemon/models/models.h"
#include "model/segment/segment.h"
#include "model/segment/segment_name.h"

#define IDENTITY_DIGITS 8
#define CHOICE_ENDING (sizeof("-0123abcd") - 1)
#define SEGMENT_ENDING (sizeof("#9999999-9999999") - 1)

_Static_assert(BRD_CONTENT_BYTES == MDL_SEGMENT_NAME_MAX, "a route's content is a model's name");

uint32_t dmn_route_number(void)
{
    static uint32_t last;
    uint32_t now = (uint32_t)time(NULL);

    last = base_max(last + 1, now);
    return last;
}

const char *dmn_route_fits(const struct dmn_model *m)
{
    if (m->model->segment) {
        return "it is a segment itself";
    }
    if (m->quantised) {
        return "it is quantised by examples, which other boards do not have";
    }
    if (m->shapes[0]) {
        return "its shapes were given here, and other boards do not have them; put them into a "
               "sidecar on every board";
    }
    if (m->model->data_file_count > 0) {
        return "it has weights in other files, which are not sent; save it as one file";
    }
    if (strlen(m->model->hash) != 64) {
        return "its file has no identity";
    }
    return NULL;
}

static void fill_tensors(const struct mdl_model *m, const struct mdl_io *io, size_t count,
                         struct brd_tensor *ret)
{
    for (size_t i = 0; i < count; i++) {
        const struct mdl_tensor *t = &m->tensors[io[i].tensor];

        ret[i] = (struct brd_tensor){
            .dtype = dmn_piped_dtype(t->dtype), .rank = (uint32_t)t->rank, .bytes = io[i].bytes};
        for (size_t k = 0; k < t->rank && k < BRD_RANK_MAX; k++) {
            ret[i].dim[k] = (uint32_t)t->dim[k];
        }
    }
}

/* How boards make the model's input of a picture. Too long, or not of one picture: they do not. */
static void fill_preprocess(const struct dmn_model *m, char ret[BRD_PREPROCESS_TEXT_MAX])
{
    const char *text = m->preprocess ? m->preprocess : "{}";

    if (m->image_width && m->model->input_count == 1 && strlen(text) < BRD_PREPROCESS_TEXT_MAX) {
        snprintf(ret, BRD_PREPROCESS_TEXT_MAX, "%s", text);
    }
}

/* FNV-1a */
static uint32_t digest_of(const char *text)
{
    uint32_t h = 0x811c9dc5u;

    for (; *text; text++) {
        h = (h ^ (uint8_t)*text) * 0x01000193u;
    }
    return h;
}

int dmn_route_fill(const struct dmn_model *m, struct brd_route *ret)
{
    /* with the ending of a segment it is still a name */
    int name = (int)(BRD_CONTENT_BYTES - 1 - SEGMENT_ENDING - CHOICE_ENDING - 1 - IDENTITY_DIGITS);
    char choice[CHOICE_ENDING + 1] = "";
    char path[PATH_MAX];
    uint32_t digest;

    *ret = (struct brd_route){.input_count = m->model->input_count,
                              .output_count = m->model->output_count};
    if (m->model->input_count > BRD_TENSORS_MAX || m->model->output_count > BRD_TENSORS_MAX ||
        !realpath(m->path, path) || strlen(path) >= sizeof(ret->path)) {
        return -EINVAL;
    }
    snprintf(ret->model, sizeof(ret->model), "%s", m->name);
    fill_preprocess(m, ret->preprocess);
    digest = m->choice.special ? dmn_choice_digest(&m->choice, m->net) : 0;
    if (m->preprocess && ret->preprocess[0]) {
        digest ^= digest_of(ret->preprocess);
    }
    if (digest) { /* frames of two choices must not mix: they may differ in bits */
        snprintf(choice, sizeof(choice), "-%08" PRIx32, digest);
    }
    snprintf(ret->content, sizeof(ret->content), "%.*s-%.*s%s", name, m->name, IDENTITY_DIGITS,
             m->model->hash, choice);
    snprintf(ret->identity, sizeof(ret->identity), "%s", m->model->hash);
    memcpy(ret->path, path, strlen(path) + 1);
    fill_tensors(m->model, m->model->inputs, m->model->input_count, ret->input);
    fill_tensors(m->model, m->model->outputs, m->model->output_count, ret->output);
    return 0;
}

/* Writes numbers as "0-3,7"; "": that is too long. */
static void leaves_text(const bool *needed, size_t count, char *ret, size_t bytes)
{
    bool fits = true;

    ret[0] = '\0';
    for (size_t i = 0, last; i < count && fits; i = last + 1) {
        for (last = i; last + 1 < count && needed[last + 1] == needed[i]; last++) {
        }
        if (needed[i]) {
            fits =
                base_append(ret, bytes, last > i ? "%s%zu-%zu" : "%s%zu", *ret ? "," : "", i, last);
        }
    }
    if (!fits) {
        ret[0] = '\0';
    }
}

/* Return: 0; -EINVAL: units that the model does not have; -ENOMEM. */
static int set_border(const struct mdl_model *m, struct brd_hop *h)
{
    base_cleanup(mdl_border_deinit) struct mdl_border front = {0}, back = {0};
    int rc = mdl_border(m, h->first_unit, &front);

    rc = rc ? rc : mdl_border(m, (size_t)h->last_unit + 1, &back);
    if (rc == 0) {
        brd_border_text(front.hash, back.hash, h->border);
    }
    return rc;
}

int dmn_route_complete(const struct dmn_model *m, struct brd_route *r)
{
    size_t leaves = (m->stamp.model.bytes + MDL_HASH_LEAF_BYTES - 1) / MDL_HASH_LEAF_BYTES;
    base_autofree bool *needed = calloc(leaves + 1, sizeof(*needed));
    const struct mdl_unit *units = m->model->units;
    int error = needed ? 0 : -ENOMEM;

    for (size_t i = 0; i < r->hop_count && !error; i++) {
        struct brd_hop *h = &r->hop[i];

        h->leaves[0] = '\0'; /* where they are not known */
        if (mdl_segment_leaves(m->model, h->first_unit, h->last_unit, needed, leaves) == 0) {
            leaves_text(needed, leaves, h->leaves, sizeof(h->leaves));
        }
        error = set_border(m->model, h);
        if (!error) {
            dmn_choice_text(&m->choice, m->net, units[h->first_unit].first_op,
                            units[h->last_unit].last_op + 1, h->primitives, sizeof(h->primitives));
        }
    }
    return error;
}

const struct brd_state *dmn_board_find(const struct brd_link_report_all *r, const char *print)
{
    for (size_t i = 0; r && i < r->board_count; i++) {
        if (strcmp(r->board[i].print, print) == 0) {
            return &r->board[i];
        }
    }
    return r && strcmp(r->self.print, print) == 0 ? &r->self : NULL;
}

const char *dmn_board_name(const struct brd_link_report_all *r, const char *print)
{
    const struct brd_state *b = dmn_board_find(r, print);

    return !b ? print : b == &r->self ? DMN_BOARD_HERE : b->name;
}

bool dmn_board_up(const struct brd_link_report_all *r, const char *print)
{
    const struct brd_state *b = dmn_board_find(r, print);

    return b && (b == &r->self || b->up);
}

const struct brd_route_state *dmn_route_state(const struct brd_link_report_all *r,
                                              const char *model, uint32_t number)
{
    for (size_t i = 0; r && i < r->route_count; i++) {
        if (r->route[i].number == number && strcmp(r->route[i].model, model) == 0) {
            return &r->route[i];
        }
    }
    return NULL;
}

static uint32_t common_share(const struct brd_hop *h)
{
    uint32_t a = h->board[0].share;

    for (size_t b = 1; b < h->board_count; b++) {
        for (uint32_t k = h->board[b].share; k;) {
            uint32_t rest = a % k;

            a = k;
            k = rest;
        }
    }
    return base_max(a, 1u);
}

void dmn_hops_text(const struct brd_hop *hop, size_t count, const struct brd_link_report_all *r,
                   char *ret)
{
    bool fits = true;

    ret[0] = '\0';
    for (size_t i = 0; i < count && fits; i++) {
        const struct brd_hop *h = &hop[i];
        uint32_t one = common_share(h);

        base_append(ret, DMN_ROUTE_TEXT_MAX, "%s%u-%u@", i ? "|" : "", h->first_unit, h->last_unit);
        for (size_t b = 0; b < h->board_count; b++) {
            fits = base_append(ret, DMN_ROUTE_TEXT_MAX, "%s%s", b ? "+" : "",
                               dmn_board_name(r, h->board[b].print));
            if (h->board[b].share != one) {
                fits = base_append(ret, DMN_ROUTE_TEXT_MAX, "*%u", h->board[b].share / one);
            }
        }
    }
    if (!fits) {
        snprintf(ret + DMN_ROUTE_TEXT_MAX - sizeof("..."), sizeof("..."), "...");
    }
}
