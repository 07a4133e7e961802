/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/weights/fetch_private.h"

#define SILENT_NS (30 * BASE_NS_PER_S) /* nothing came: it is asked for again */
#define WRONG_MAX 3u

/* ---- ends ---- */

/* Return: whether the thread's work was done; else all are told. */
static bool went_well(struct fetch_file *f)
{
    if (f->work.rc != 0) {
        fetch_end_all(f, f->work.rc == STORE_E_FULL ? PIPED_RESOURCE_EXHAUSTED : PIPED_INTERNAL,
                      f->work.why);
    }
    return f->work.rc == 0;
}

/* Other bytes came than those that were asked for. */
static void came_wrong(struct fetch_file *f, const char *what)
{
    char why[STORE_WHY_BYTES];

    if (++f->wrong >= WRONG_MAX) {
        snprintf(why, sizeof(why), "%s came wrong, the %u. time", what, f->wrong);
        fetch_end_all(f, PIPED_PROTOCOL, why);
        f->wrong = 0;
    }
}

/* ---- the list ---- */

/* Who can be asked now. */
static size_t source(const struct fetch_file *f)
{
    for (const struct fetch_ask *a = f->asks; a; a = a->next) {
        if (!a->ended && f->fetch->link->peer[a->peer].joined) {
            return a->peer;
        }
    }
    return FETCH_NOBODY;
}

static int want(struct fetch_file *f, size_t peer, const uint64_t *leaf, size_t count)
{
    struct lnk_message m = {.header.type = LNK_WANT};

    memcpy(m.want.model, f->identity, LNK_HASH_BYTES);
    m.tail = (const uint8_t *)leaf;
    m.tail_bytes = count * sizeof(*leaf);
    return link_put(f->fetch->link, peer, LNK_URGENT, &m, NULL, 0, NULL, NULL);
}

static void ask_list(struct fetch_file *f)
{
    size_t peer = source(f);

    if (f->list_of == FETCH_NOBODY && peer != FETCH_NOBODY && want(f, peer, NULL, 0) == 0) {
        f->list_of = peer;
        f->asked_ns = f->fetch->now_ns;
    }
}

/* There is a list: notes what is there. */
static void take_list(struct fetch_file *f)
{
    const struct mdl_leaves *l = store_file_leaves(f->is);

    if (l && !f->count) {
        f->have = calloc(l->count, sizeof(*f->have));
        f->checked = calloc(l->count, sizeof(*f->checked));
        if (!f->have || !f->checked) {
            fetch_end_all(f, PIPED_RESOURCE_EXHAUSTED, "out of memory");
            base_free_ptr(&f->have);
            base_free_ptr(&f->checked);
            return;
        }
        f->count = l->count;
        memcpy(f->have, l->present, l->count * sizeof(*f->have));
    }
}

static void opened(struct fetch_file *f)
{
    if (went_well(f)) {
        take_list(f);
    }
}

static void listed(struct fetch_file *f)
{
    if (f->work.rc == STORE_E_BAD) {
        came_wrong(f, "the leaf list");
    } else if (went_well(f)) {
        take_list(f);
    }
}

/* ---- what is needed ---- */

/* Reads what new asks need. Return: whether there are such. */
static bool take_asks(struct fetch_file *f)
{
    bool fresh = false;

    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        if (a->ended || a->stage != FETCH_NEW) {
            continue;
        }
        a->needed = a->needed ? a->needed : calloc(f->count, sizeof(*a->needed));
        if (!a->needed) {
            fetch_end(a, PIPED_RESOURCE_EXHAUSTED, "out of memory");
        } else if (!fetch_read_leaves(a->leaves, f->count, a->needed)) {
            fetch_end(a, PIPED_INVALID_ARGUMENT, "the model's file has no such leaves");
        }
        fresh |= !a->ended;
    }
    return fresh;
}

static void was_checked(struct fetch_file *f)
{
    /* Whatever went wrong: what is damaged is not marked any more. */
    memcpy(f->have, store_file_leaves(f->is)->present, f->count * sizeof(*f->have));
    went_well(f);
    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        a->stage = a->stage == FETCH_CHECKS ? FETCH_CHECKED : a->stage;
    }
}

/* What new asks need and was not read by this process is read again; and there must be room for
 * the rest. Return: whether the thread does that now. */
static bool check(struct fetch_file *f)
{
    const struct mdl_leaves *l = store_file_leaves(f->is);
    uint64_t room = 0;
    bool *again;

    if (!take_asks(f)) {
        return false;
    }
    again = calloc(f->count, sizeof(*again));
    if (!again) {
        fetch_end_all(f, PIPED_RESOURCE_EXHAUSTED, "out of memory");
        return false;
    }
    for (size_t i = 0; i < f->count; i++) {
        bool needed = false;

        for (const struct fetch_ask *a = f->asks; a && !needed; a = a->next) {
            needed = !a->ended && a->needed && a->needed[i];
        }
        again[i] = needed && f->have[i] && !f->checked[i];
        f->checked[i] |= again[i];
        room += needed && !f->have[i] ? mdl_leaf_bytes(l, i) : 0;
    }
    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        a->stage = a->needed && a->stage == FETCH_NEW ? FETCH_CHECKS : a->stage;
    }
    fetch_disk_check(f, again, room, was_checked);
    return true;
}

static void end_complete(struct fetch_file *f)
{
    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        bool all = !a->ended && a->stage == FETCH_CHECKED;

        for (size_t i = 0; all && i < f->count; i++) {
            all = !a->needed[i] || f->have[i];
        }
        if (all) {
            fetch_end(a, PIPED_OK, "");
            f->uses++;
            link_log("%zu leaves have come; %s has all that is needed", f->got,
                     store_file_path(f->is));
            f->got = 0;
        }
    }
}

/* ---- leaves ---- */

static bool is_on_its_way(const struct fetch_file *f, size_t leaf)
{
    bool found = false;

    for (size_t i = 0; i < f->asked_count; i++) {
        found |= f->asked[i].leaf == leaf;
    }
    for (size_t i = 0; i < f->arrived_count; i++) {
        found |= f->arrived[i].leaf == leaf;
    }
    for (size_t i = 0; i < f->work.put_count; i++) {
        found |= f->work.put[i].leaf == leaf;
    }
    return found;
}

static void ask_leaves(struct fetch_file *f)
{
    size_t out = f->asked_count + f->arrived_count + f->work.put_count, count = 0;
    size_t peer = source(f);
    uint64_t leaf[FETCH_WINDOW];

    if (peer == FETCH_NOBODY) {
        return;
    }
    for (size_t i = 0; i < f->count && out + count < FETCH_WINDOW; i++) {
        bool needed = false;

        for (const struct fetch_ask *a = f->asks; a && !needed; a = a->next) {
            needed = !a->ended && a->stage == FETCH_CHECKED && a->needed[i] && !f->have[i];
        }
        if (needed && !is_on_its_way(f, i)) {
            leaf[count++] = i;
        }
    }
    if (count == 0 || want(f, peer, leaf, count) != 0) {
        return;
    }
    if (f->asked_count == 0) {
        f->asked_ns = f->fetch->now_ns;
    }
    for (size_t i = 0; i < count; i++) {
        f->asked[f->asked_count].leaf = (size_t)leaf[i];
        f->asked[f->asked_count++].peer = peer;
    }
}

static void written(struct fetch_file *f)
{
    if (!went_well(f)) {
        return;
    }
    for (size_t i = 0; i < f->work.put_count; i++) {
        const struct store_leaf *l = &f->work.put[i];
        char what[32];

        if (l->wrong) {
            snprintf(what, sizeof(what), "leaf %zu", l->leaf);
            came_wrong(f, what);
        } else {
            f->have[l->leaf] = f->checked[l->leaf] = true;
            f->got++;
        }
    }
}

/* ---- turns ---- */

static bool is_wanted(const struct fetch_file *f)
{
    const struct fetch_ask *a = f->asks;

    while (a && a->ended) {
        a = a->next;
    }
    return a != NULL;
}

/* Gives the thread what it can do next. */
static void step(struct fetch_file *f)
{
    if (!f->is) {
        fetch_disk_open(f, opened);
    } else if (!f->count && f->list) {
        fetch_disk_list(f, listed);
    } else if (!f->count) {
        ask_list(f);
    } else if (!check(f)) {
        end_complete(f);
        if (f->arrived_count > 0) {
            fetch_disk_put(f, written);
        }
    }
}

static void advance(struct fetch_file *f)
{
    uint64_t now_ns = f->fetch->now_ns;

    if (!is_wanted(f)) {
        fetch_forget(f);
        return;
    }
    if (f->came) {
        f->came = false;
        f->asked_ns = now_ns;
    } else if (now_ns - f->asked_ns > SILENT_NS) {
        f->asked_count = 0;
        f->list_of = FETCH_NOBODY;
    }
    if (!f->busy) {
        step(f);
    }
    if (f->count) {
        ask_leaves(f);
    }
}

/* Calls one done(), which may begin, cancel and release. Return: false: none is due. */
static bool deliver(struct fetch *fetch)
{
    for (struct fetch_file *f = fetch->files; f; f = f->next) {
        for (struct fetch_ask **at = &f->asks; *at; at = &(*at)->next) {
            struct fetch_ask *a = *at;

            if (a->ended) {
                *at = a->next;
                a->done(a->arg, a->status, a->status ? a->why : store_file_path(f->is));
                fetch_free_ask(a);
                return true;
            }
        }
    }
    return false;
}

void fetch_go(struct link *l, uint64_t now_ns)
{
    struct fetch *fetch = l->fetch;

    fetch->now_ns = now_ns;
    jobs_dispatch(fetch->jobs);
    do {
        for (struct fetch_file *f = fetch->files; f; f = f->next) {
            advance(f);
        }
    } while (deliver(fetch));
    for (struct fetch_file **at = &fetch->files; *at;) {
        struct fetch_file *f = *at;

        if (f->busy || f->asks || f->uses) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        fetch_disk_free(f);
    }
    answers_go(fetch->answers);
}
