/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of micro-benchmarks, and the matrices of a unit. */

#include "base/base.h"
#include "daemon/plans/profile.h"

/* Each layer reads the previous one; 1.5 G multiply-accumulates in all. Kernel 0 is a fully
 * connected layer; without channels of its own it is a depthwise convolution. Widths, kernels and
 * channels are those of Pipe-it's section V-B, plus the few input channels of a first layer and the
 * many of a last one. */
static const struct layer {
    unsigned kernel, out, stride;
} layers[] = {
    /* width 112 */
    {3, 32, 1},
    {3, 0, 1},
    {3, 32, 1},
    {1, 96, 1},
    {3, 0, 1},
    {1, 32, 1},
    /* 56 */
    {3, 64, 2},
    {3, 0, 1},
    {1, 256, 1},
    {1, 64, 1},
    {3, 64, 1},
    {3, 32, 1},
    {5, 32, 1},
    {1, 128, 1},
    {5, 0, 1},
    /* 28 */
    {3, 64, 2},
    {7, 32, 1},
    {1, 256, 1},
    {3, 0, 1},
    {1, 128, 1},
    {3, 128, 1},
    {1, 32, 1},
    {3, 96, 1},
    {11, 32, 1},
    {1, 512, 1},
    /* 14 */
    {1, 128, 2},
    {3, 0, 1},
    {3, 256, 1},
    {1, 64, 1},
    {3, 96, 1},
    {5, 128, 1},
    {1, 512, 1},
    {5, 0, 1},
    {3, 64, 1},
    {1, 1024, 1},
    {1, 256, 1},
    /* 7 */
    {3, 0, 2},
    {3, 256, 1},
    {1, 1024, 1},
    {3, 0, 1},
    {1, 512, 1},
    {5, 0, 1},
    {3, 128, 1},
    {1, 512, 1},
    {1, 64, 1},
    {3, 384, 1},
    {3, 192, 1},
    {1, 64, 1},
    /* fully connected: 3136 values in, 16 M weights */
    {0, 1024, 0},
    {0, 2048, 0},
    {0, 2048, 0},
    {0, 256, 0},
    {0, 1024, 0},
    {0, 128, 0},
    {0, 512, 0},
    {0, 4096, 0},
    {0, 1000, 0},
};

static int write_text(FILE *f)
{
    fputs("{\"name\": \"profile\", \"seed\": 1, \"input\": {\"shape\": [3, 112, 112]}, "
          "\"layers\": [",
          f);
    for (size_t i = 0; i < base_array_count(layers); i++) {
        const struct layer *l = &layers[i];

        if (l->kernel) {
            fprintf(f, "%s\n{\"op\": \"%s\", ", i ? "," : "", l->out ? "conv" : "dwconv");
            if (l->out) {
                fprintf(f, "\"out\": %u, ", l->out);
            }
            fprintf(f, "\"kernel\": %u, \"stride\": %u, \"pad\": \"same\", \"act\": \"relu\"}",
                    l->kernel, l->stride);
        } else {
            fprintf(f, ",\n{\"op\": \"fc\", \"out\": %u}", l->out);
        }
    }
    fputs("]}\n", f);
    return fflush(f) == 0 ? 0 : -errno;
}

int dmn_profile_write_net(const char *folder, char **ret_path)
{
    base_autofree char *path = NULL;
    FILE *f;
    int fd, error;

    if (asprintf(&path, "%s/profile-XXXXXX.json", folder) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    fd = mkostemps(path, 5, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    f = fdopen(fd, "w");
    if (!f) {
        error = -errno;
        close(fd);
    } else {
        error = write_text(f);
        fclose(f);
    }
    if (error) {
        unlink(path);
        return error;
    }
    *ret_path = base_take(path);
    return 0;
}

bool dmn_unit_gemm(const struct mdl_model *m, size_t unit, struct tun_bench *ret)
{
    const struct mdl_op *op = &m->ops[m->units[unit].heavy_op];
    const struct mdl_tensor *out = op->out[0] != MDL_NONE ? &m->tensors[op->out[0]] : NULL;
    const struct mdl_tensor *weights = op->in[1] != MDL_NONE ? &m->tensors[op->in[1]] : NULL;
    double elements, columns;

    if (!out || !weights || out->rank < 2 || op->macs <= 0 ||
        m->storages[weights->storage].home != MDL_HOME_CONST) {
        return false;
    }
    if (op->kind == MDL_OP_CONV &&
        (op->attr.conv.groups == 1 || op->attr.conv.groups == out->dim[1])) {
        columns = (double)out->dim[1];
    } else if ((op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL) && weights->rank == 2) {
        columns = (double)out->dim[out->rank - 1];
    } else {
        return false;
    }
    elements = (double)mdl_elements(out);
    ret->m = columns;
    ret->n = elements / columns;
    ret->k = op->macs / elements; /* every output is a sum of K terms */
    if (op->kind == MDL_OP_CONV) {
        const struct mdl_window *w = &op->attr.conv.window;

        ret->layer =
            tun_layer_of_conv(mdl_window_taps(w), mdl_window_strided(w), op->attr.conv.groups > 1);
    }
    return true;
}
