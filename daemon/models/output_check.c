/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/output_check.h"

#include "base/base.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"
#include "ipc/protocol.h"
#include "model/sidecar.h"

/* The outputs as a client is told of them, but for their places. */
static uint32_t outputs_of(const struct mdl_model *m, struct piped_tensor ret[IPC_TENSORS_MAX])
{
    static const uint32_t types[MDL_DTYPE_COUNT] = {
        [MDL_F32] = PIPED_F32, [MDL_I32] = PIPED_I32, [MDL_I64] = PIPED_I64,
        [MDL_U8] = PIPED_U8,   [MDL_I8] = PIPED_I8,   [MDL_BOOL] = PIPED_BOOL,
    };
    uint32_t count = 0;

    for (; count < m->output_count && count < IPC_TENSORS_MAX; count++) {
        const struct mdl_tensor *t = &m->tensors[m->outputs[count].tensor];

        ret[count] = (struct piped_tensor){.name = m->outputs[count].name,
                                           .dtype = types[t->dtype],
                                           .rank = (uint32_t)t->rank,
                                           .bytes = m->outputs[count].bytes};
        for (size_t i = 0; i < t->rank && i < IPC_RANK_MAX; i++) {
            ret[count].dim[i] = (uint32_t)t->dim[i];
        }
    }
    return count;
}

int dmn_output_fits(const struct mdl_model *m)
{
    struct piped_tensor outputs[IPC_TENSORS_MAX];
    struct piped_decoder *d = NULL;
    int rc = m->output ? piped_decoder_new(m->output, outputs, outputs_of(m, outputs), &d) : 0;

    piped_decoder_free(d);
    return rc;
}

int dmn_output_check(const struct mdl_model *m, const char *path, char *ret_error,
                     size_t error_bytes)
{
    int rc = dmn_output_fits(m);

    if (rc < 0) {
        base_autofree char *sidecar = mdl_sidecar_find(path);

        snprintf(ret_error, error_bytes, "%.300s: key 'output': %s", sidecar ? sidecar : path,
                 piped_last_error());
    }
    return rc;
}
