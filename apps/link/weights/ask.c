/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: what boards ask for, and how that ends. */

#include "apps/link/weights/fetch_private.h"
#include "base/base.h"

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
