/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link's front: which models its clients may open, and their tensors. */
#include "apps/link/front/server_private.h"

/* Copies tensors that make sense. Return: false: they do not. */
static bool set_tensors(const struct brd_tensor *from, size_t count, struct brd_tensor *to,
                        size_t *ret_bytes)
{
    if (count == 0 || count > BRD_TENSORS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = ipc_dtype_bytes(from[i].dtype);

        if (from[i].rank > BRD_RANK_MAX) {
            return false;
        }
        to[i] = (struct brd_tensor){
            .dtype = from[i].dtype, .rank = from[i].rank, .bytes = from[i].bytes};
        for (size_t d = 0; d < from[i].rank; d++) {
            to[i].dim[d] = from[i].dim[d];
            if (__builtin_mul_overflow(bytes, (uint64_t)from[i].dim[d], &bytes)) {
                return false;
            }
        }
        if (bytes == 0 || bytes != from[i].bytes || bytes > IPC_POOL_BYTES_MAX) {
            return false;
        }
    }
    *ret_bytes = front_offset(to, count, count);
    return *ret_bytes <= IPC_POOL_BYTES_MAX;
}

/* Return: false: the route has no hops, or tensors that make no sense. */
static bool set_model(const struct brd_route *r, struct front_model *ret)
{
    size_t boards = 0;

    memset(ret, 0, sizeof(*ret));
    if (r->hop_count == 0 || r->hop_count > BRD_HOPS_MAX ||
        !set_tensors(r->input, r->input_count, ret->format.input, &ret->format.input_bytes) ||
        !set_tensors(r->output, r->output_count, ret->format.output, &ret->format.output_bytes)) {
        return false;
    }
    snprintf(ret->name, sizeof(ret->name), "%s", r->model);
    ret->pictures = r->preprocess[0] != 0;
    ret->format.input_count = r->input_count;
    ret->format.output_count = r->output_count;
    for (size_t i = 0; i < r->hop_count; i++) {
        boards += r->hop[i].board_count;
    }
    ret->depth = (uint32_t)(2 * boards); /* one is computed while another is on its way */
    return true;
}

void front_list_set(struct front_list *l, const struct brd_routes *r)
{
    l->count = 0;
    for (size_t i = 0; i < r->count && i < BRD_ROUTES_MAX; i++) {
        l->count += set_model(&r->route[i], &l->model[l->count]);
    }
}

const struct front_model *front_list_find(const struct front_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!*name || strcmp(l->model[i].name, name) == 0) {
            return &l->model[i];
        }
    }
    return NULL;
}
