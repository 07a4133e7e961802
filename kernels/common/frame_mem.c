/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/frame_mem.h"

void *krn_tensor_ptr(const struct mdl_model *m, size_t t, const struct krn_mem *mem)
{
    const struct mdl_tensor *tensor = &m->tensors[t];
    const struct mdl_storage *s = &m->storages[tensor->storage];
    const uint8_t *base = NULL;

    switch (s->home) {
    case MDL_HOME_ARENA:
        base = mem->arena + s->offset;
        break;
    case MDL_HOME_INPUT:
        base = mem->inputs[s->index];
        break;
    case MDL_HOME_OUTPUT:
        base = mem->outputs[s->index];
        break;
    case MDL_HOME_CONST:
        base = s->data;
        break;
    }
    return (uint8_t *)(uintptr_t)base + tensor->offset;
}
