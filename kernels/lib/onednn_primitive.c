/* SPDX-License-Identifier: Apache-2.0 */
/* What primitives of all operators share: handles, scratch, running. */
#include <sched.h>

#include "kernels/lib/library_room.h"
#include "kernels/lib/onednn.h"

struct krn_dnnl_set {
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[KRN_DNNL_ARGS_MAX];
    size_t count;
};

static void set_free(struct krn_dnnl_set *s)
{
    for (size_t i = 0; s && i < s->count; i++) {
        dnnl_memory_destroy(s->args[i].memory);
    }
    if (s && s->stream) {
        dnnl_stream_destroy(s->stream);
    }
    free(s);
}

static struct krn_dnnl_set *set_new(const struct krn_dnnl *d)
{
    struct krn_dnnl_set *s =
        krn_library_room(KRN_DNNL_SET_BYTES) == 0 ? calloc(1, sizeof(*s)) : NULL;

    if (!s || dnnl_stream_create(&s->stream, krn_dnnl_engine(), dnnl_stream_default_flags) !=
                  dnnl_success) {
        free(s);
        return NULL;
    }
    for (; s->count < d->count; s->count++) {
        s->args[s->count].arg = d->arg[s->count];
        if (dnnl_memory_create(&s->args[s->count].memory, KRN_DNNL_MD(&d->md[s->count]),
                               krn_dnnl_engine(), DNNL_MEMORY_NONE) != dnnl_success) {
            set_free(s);
            return NULL;
        }
    }
    return s;
}

int krn_dnnl_init(struct krn_dnnl *d, const_dnnl_primitive_desc_t pd, size_t count, const int *args)
{
    int r = krn_library_room(KRN_DNNL_ROOM_BYTES);

    *d = (struct krn_dnnl){.count = count + 1};
    for (size_t i = 0; i <= count && r == 0; i++) {
        d->arg[i] = i < count ? args[i] : DNNL_ARG_SCRATCHPAD;
        r = krn_dnnl_md_arg(&d->md[i], pd, d->arg[i]);
    }
    if (r == 0) {
        r = krn_dnnl_error(dnnl_primitive_create(&d->primitive, pd));
        d->primitive = r == 0 ? d->primitive : NULL;
    }
    /* with at least one set, a run never fails: it can wait for it */
    if (r == 0) {
        d->idle[0] = set_new(d);
        r = d->idle[0] ? 0 : -ENOMEM;
    }
    if (r < 0) {
        krn_dnnl_deinit(d);
    }
    return r;
}

void krn_dnnl_deinit(struct krn_dnnl *d)
{
    for (size_t i = 0; i < KRN_DNNL_IDLE; i++) {
        set_free(atomic_exchange(&d->idle[i], NULL));
    }
    for (size_t i = 0; i < d->count; i++) {
        krn_dnnl_md_deinit(&d->md[i]);
    }
    if (d->primitive) {
        dnnl_primitive_destroy(d->primitive);
    }
    d->primitive = NULL;
    d->count = 0;
}

dnnl_primitive_attr_t krn_dnnl_attr(const_dnnl_post_ops_t post, dnnl_fpmath_mode_t mode)
{
    dnnl_primitive_attr_t attr;

    if (krn_library_room(KRN_DNNL_ROOM_BYTES) < 0 ||
        dnnl_primitive_attr_create(&attr) != dnnl_success) {
        return NULL;
    }
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
        dnnl_primitive_attr_set_fpmath_mode(attr, mode) == dnnl_success &&
        (!post || dnnl_primitive_attr_set_post_ops(attr, post) == dnnl_success)) {
        return attr;
    }
    dnnl_primitive_attr_destroy(attr);
    return NULL;
}

dnnl_primitive_desc_t krn_dnnl_if_fast(dnnl_primitive_desc_t pd)
{
    const char *name = "ref";

    if (pd) {
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    }
    if (pd && strncmp(name, "ref", 3) == 0) {
        dnnl_primitive_desc_destroy(pd);
        return NULL;
    }
    return pd;
}

int krn_dnnl_reorder(struct krn_dnnl *d, const struct krn_dnnl_md *from,
                     const struct krn_dnnl_md *to)
{
    static const int args[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
    dnnl_primitive_attr_t attr = krn_dnnl_attr(NULL, dnnl_fpmath_mode_strict);
    dnnl_primitive_desc_t pd;
    bool ok = attr && dnnl_reorder_primitive_desc_create(&pd, KRN_DNNL_MD(from), krn_dnnl_engine(),
                                                         KRN_DNNL_MD(to), krn_dnnl_engine(),
                                                         attr) == dnnl_success;
    int r = ok ? krn_dnnl_init(d, pd, base_array_count(args), args) : attr ? -EOPNOTSUPP : -ENOMEM;

    if (ok) {
        dnnl_primitive_desc_destroy(pd);
    }
    dnnl_primitive_attr_destroy(attr);
    return r;
}

int krn_dnnl_reorder_once(const struct krn_dnnl_md *from, void *src, const struct krn_dnnl_md *to,
                          void *dst)
{
    struct krn_dnnl d = {0};
    base_autofree void *pad = NULL;
    int r = krn_dnnl_reorder(&d, from, to);

    if (r < 0) {
        return r;
    }
    pad = aligned_alloc(BASE_CACHE_LINE_BYTES, krn_dnnl_align(krn_dnnl_scratch(&d) + 1));
    if (pad) {
        krn_dnnl_run(&d, (void *[]){src, dst, pad});
    }
    krn_dnnl_deinit(&d);
    return pad ? 0 : -ENOMEM;
}

size_t krn_dnnl_scratch(const struct krn_dnnl *d)
{
    return d->primitive ? krn_dnnl_md_bytes(&d->md[d->count - 1]) : 0;
}

static struct krn_dnnl_set *set_take(struct krn_dnnl *d)
{
    for (;;) {
        struct krn_dnnl_set *s = NULL;

        for (size_t i = 0; i < KRN_DNNL_IDLE && !s; i++) {
            s = atomic_exchange_explicit(&d->idle[i], NULL, memory_order_acquire);
        }
        s = s ? s : set_new(d);
        if (s) {
            return s;
        }
        sched_yield(); /* no memory for another set: wait until one is returned */
    }
}

static void set_give(struct krn_dnnl *d, struct krn_dnnl_set *s)
{
    for (size_t i = 0; i < KRN_DNNL_IDLE; i++) {
        struct krn_dnnl_set *none = NULL;

        if (atomic_compare_exchange_strong_explicit(&d->idle[i], &none, s, memory_order_release,
                                                    memory_order_relaxed)) {
            return;
        }
    }
    set_free(s);
}

void krn_dnnl_run(struct krn_dnnl *d, void *const *handles)
{
    struct krn_dnnl_set *s = set_take(d);

    krn_dnnl_alone();
    for (size_t i = 0; i < s->count; i++) {
        dnnl_memory_set_data_handle(s->args[i].memory, handles[i]);
    }
    dnnl_primitive_execute(d->primitive, s->stream, (int)s->count, s->args);
    set_give(d, s);
}
