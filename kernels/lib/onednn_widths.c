/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/onednn_widths.h"

#include "base/base.h"
#include "kernels/lib/onednn.h"

size_t krn_dnnl_width(size_t width)
{
    return base_min(base_max(width, (size_t)1), (size_t)KRN_DNNL_WIDTH_MAX);
}

void krn_dnnl_widths_init(struct krn_dnnl_widths *w)
{
    *w = (struct krn_dnnl_widths){0};
    pthread_mutex_init(&w->lock, NULL);
}

void krn_dnnl_widths_deinit(struct krn_dnnl_widths *w, void (*free_one)(void *made))
{
    for (size_t i = 0; i <= KRN_DNNL_WIDTH_MAX; i++) {
        void *made = atomic_load(&w->made[i]);

        if (made) {
            free_one(made);
        }
    }
    pthread_mutex_destroy(&w->lock);
}

int krn_dnnl_widths_prepare(struct krn_dnnl_widths *w, size_t width,
                            int (*make)(const void *of, size_t width, void **ret), const void *of)
{
    void *made;
    int r = 0;

    width = krn_dnnl_width(width);
    pthread_mutex_lock(&w->lock);
    if (!atomic_load(&w->made[width])) {
        krn_dnnl_alone();
        r = make(of, width, &made);
        if (r == 0) {
            atomic_store(&w->made[width], made);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

void *krn_dnnl_widths_get(struct krn_dnnl_widths *w, size_t width)
{
    void *made = atomic_load_explicit(&w->made[krn_dnnl_width(width)], memory_order_acquire);

    return made ? made : atomic_load(&w->made[1]);
}
