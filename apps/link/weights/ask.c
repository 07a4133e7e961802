/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: what is asked for, what comes, and how that ends; fetch_go() is in fetch.c. */
#include "apps/link/weights/fetch_private.h"
#include "base/shown_text.h"

void fetch_end(struct fetch_ask *a, int status, const char *why)
{
    a->ended = true;
    a->status = status;
    snprintf(a->why, sizeof(a->why), "%s", why);
}

void fetch_end_all(struct fetch_file *f, int status, const char *why)
{
    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        if (!a->ended) {
            fetch_end(a, status, why);
        }
    }
}

void fetch_free_ask(struct fetch_ask *a)
{
    free(a->leaves);
    free(a->needed);
    free(a);
}

void fetch_forget(struct fetch_file *f)
{
    for (size_t i = 0; i < f->arrived_count; i++) {
        free((void *)(uintptr_t)f->arrived[i].data);
    }
    f->arrived_count = f->asked_count = 0;
    f->list_of = FETCH_NOBODY;
    f->wrong = 0;
}

bool fetch_read_leaves(const char *text, size_t count, bool *ret)
{
    bool ok = true;

    for (size_t i = 0; ret && i < count && !*text; i++) {
        ret[i] = true;
    }
    while (*text && ok) {
        char *after;
        unsigned long long first = strtoull(text, &after, 10), last = first;

        ok = *text >= '0' && *text <= '9';
        if (ok && *after == '-') {
            text = after + 1;
            last = strtoull(text, &after, 10);
            ok = *text >= '0' && *text <= '9';
        }
        ok = ok && first <= last && last < count;
        for (size_t i = (size_t)first; ok && ret && i <= last; i++) {
            ret[i] = true;
        }
        ok = ok && (*after == '\0' || (*after == ',' && after[1] != '\0'));
        text = after + (*after == ',');
    }
    return ok;
}

int fetch_new(struct link *l, const char *state_folder, uint64_t bytes_max, fetch_path *path_of)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    int r;

    if (!fetch) {
        return -ENOMEM;
    }
    *fetch = (struct fetch){
        .link = l, .folder = state_folder, .bytes_max = bytes_max, .path_of = path_of};
    fetch->answers = answers_new(fetch);
    r = fetch->answers ? jobs_new(&fetch->jobs) : -ENOMEM;
    if (r < 0) {
        free(fetch->answers);
        free(fetch);
        return r;
    }
    l->fetch = fetch;
    return 0;
}

void fetch_free(struct link *l)
{
    struct fetch *fetch = l->fetch;

    l->fetch = NULL;
    if (!fetch) {
        return;
    }
    fetch->closing = true;
    fetch->jobs = jobs_free(fetch->jobs);
    while (fetch->files) {
        struct fetch_file *f = fetch->files;

        fetch->files = f->next;
        while (f->asks) {
            struct fetch_ask *a = f->asks;

            f->asks = a->next;
            fetch_free_ask(a);
        }
        fetch_disk_free(f);
    }
    answers_free(fetch->answers);
    store_close(fetch->store);
    free(fetch);
}

int fetch_fd(const struct link *l)
{
    return jobs_fd(l->fetch->jobs);
}

static struct fetch_file *find(const struct fetch *fetch, const uint8_t *identity)
{
    struct fetch_file *f = fetch->files;

    while (f && memcmp(f->identity, identity, LNK_HASH_BYTES) != 0) {
        f = f->next;
    }
    return f;
}

static struct fetch_file *find_or_make(struct fetch *fetch, const uint8_t *identity)
{
    struct fetch_file *f = find(fetch, identity);

    if (f) {
        return f;
    }
    f = calloc(1, sizeof(*f));
    if (f) {
        memcpy(f->identity, identity, sizeof(f->identity));
        f->fetch = fetch;
        f->list_of = FETCH_NOBODY;
        f->next = fetch->files;
        fetch->files = f;
    }
    return f;
}

int fetch_begin(struct link *l, size_t head_peer, const uint8_t identity[LNK_HASH_BYTES],
                const char *leaves, void (*done)(void *arg, int status, const char *path_or_why),
                void *arg)
{
    struct fetch_ask *a = calloc(1, sizeof(*a)), **end;
    struct fetch_file *f;

    if (head_peer >= BRD_MAX || !fetch_read_leaves(leaves, SIZE_MAX, NULL)) {
        free(a);
        return -EINVAL;
    }
    f = a ? find_or_make(l->fetch, identity) : NULL;
    if (!f || (a->leaves = strdup(leaves)) == NULL) {
        free(a);
        return -ENOMEM;
    }
    a->peer = head_peer;
    a->done = done;
    a->arg = arg;
    for (end = &f->asks; *end; end = &(*end)->next) {
    }
    *end = a;
    return 0;
}

size_t fetch_cancel(struct link *l, const void *arg)
{
    size_t count = 0;

    for (struct fetch_file *f = l->fetch->files; f; f = f->next) {
        for (struct fetch_ask **at = &f->asks; *at;) {
            struct fetch_ask *a = *at;

            if (a->arg != arg) {
                at = &a->next;
                continue;
            }
            *at = a->next;
            f->uses -= a->ended && a->status == 0;
            fetch_free_ask(a);
            count++;
        }
    }
    return count;
}

void fetch_release(struct link *l, const uint8_t identity[LNK_HASH_BYTES])
{
    struct fetch_file *f = find(l->fetch, identity);

    if (f && f->uses > 0) {
        f->uses--;
    }
}

/* ---- LEAF ---- */

static void *copy(const struct lnk_bytes *part)
{
    void *ret = malloc(part->bytes);

    return ret ? memcpy(ret, part->data, part->bytes) : NULL;
}

static void list_came(struct fetch_file *f, size_t peer, const struct lnk_bytes *part)
{
    if (f->list_of == peer && !f->list) {
        f->list = copy(part);
        f->list_bytes = part->bytes;
        f->list_of = FETCH_NOBODY;
        f->came = true;
    }
}

/* Forgets what @peer was asked for. Return: whether it was asked for something. */
static bool forget_peer(struct fetch_file *f, size_t peer)
{
    size_t kept = 0;
    bool found = f->list_of == peer;

    f->list_of = found ? FETCH_NOBODY : f->list_of;
    for (size_t i = 0; i < f->asked_count; i++) {
        if (f->asked[i].peer == peer) {
            found = true;
        } else {
            f->asked[kept++] = f->asked[i];
        }
    }
    f->asked_count = kept;
    return found;
}

/* The peer cannot send the file. */
static void refused(struct fetch_file *f, size_t peer, const struct lnk_bytes *part)
{
    char why[STORE_WHY_BYTES];

    if (!forget_peer(f, peer)) {
        return;
    }
    snprintf(why, sizeof(why), "%s: %.*s", f->fetch->link->boards.board[peer].name,
             (int)base_min(part->bytes, (size_t)LNK_TEXT_MAX), (const char *)part->data);
    shown_clean(why, "");
    for (struct fetch_ask *a = f->asks; a; a = a->next) {
        if (!a->ended && a->peer == peer) {
            fetch_end(a, PIPED_UNAVAILABLE, why);
        }
    }
}

static void leaf_came(struct fetch_file *f, size_t peer, uint64_t leaf,
                      const struct lnk_bytes *part)
{
    for (size_t i = 0; i < f->asked_count; i++) {
        if (f->asked[i].leaf == leaf && f->asked[i].peer == peer) {
            struct store_leaf *to = &f->arrived[f->arrived_count];

            f->asked[i] = f->asked[--f->asked_count];
            *to = (struct store_leaf){.leaf = leaf, .bytes = part->bytes, .data = copy(part)};
            f->arrived_count += to->data != NULL;
            f->came = true;
            break;
        }
    }
}

void fetch_leaf(struct link *l, size_t peer, const struct lnk_message *m)
{
    struct fetch_file *f = find(l->fetch, m->leaf.model);

    if (!f) {
        return;
    }
    if (m->leaf.leaf == LNK_LEAF_LIST) {
        list_came(f, peer, m->part);
    } else if (m->leaf.leaf == LNK_LEAF_REFUSED) {
        refused(f, peer, m->part);
    } else {
        leaf_came(f, peer, m->leaf.leaf, m->part);
    }
}

void fetch_peer_gone(struct link *l, size_t peer)
{
    for (struct fetch_file *f = l->fetch->files; f; f = f->next) {
        forget_peer(f, peer);
    }
    answers_peer_gone(l->fetch->answers, peer);
}
