/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/model.h - a loaded network: storages, strided tensors, operators, units; the contract of
 * model/
 *
 * A loaded model is plain data, immutable after mdl_load() and shared read-only by every thread.
 *
 *  - A *storage* is a piece of memory: a range of the frame's arena, a constant, or a buffer
 * supplied with the frame (a model input or output). Two storages overlap in the arena only if
 * their lifetimes in unit order do not overlap, so any team can run any unit of any frame and a
 * plan can change without moving data.
 *  - A *tensor* is a strided view of a storage. Dimensions are in ONNX order (N,C,H,W for images);
 * strides give the layout: NHWC is stride {H*W*C, 1, W*C, C}. Broadcast is stride 0; transpose,
 * slice, split, squeeze and the parts of a concat are views and cost nothing.
 *  - An *op* is one operator after fusion, in topological order; its epilogue (residual add,
 * activation) runs while the result is still in cache.
 *  - A *unit* is a run of consecutive ops with at most one heavy operator; a plan may cut between
 * any two units.
 */
#pragma once

#include "model/op.h"
#include "model/values.h"

#define MDL_NAME_MAX 256u
#define MDL_ERROR_MAX 1024u

struct mdl_unit {
    char *name;               /* owned: name of its heavy op, or else of its first op */
    size_t first_op, last_op; /* inclusive */
    size_t heavy_op;          /* index of the heavy operator, or first_op if there is none */
    double weight; /* equations (1) and (2) of the Pipe-search paper: H W C R S K, H W C F */
    double macs;
    size_t weight_bytes;
    size_t live_bytes; /* bytes of the tensors alive across the cut after this unit, which a
                        * hand-off moves between caches */
};

/* What is wrong with a file or its sidecar, though it is served: model/declared.h. */
struct mdl_note {
    const char *kind; /* a word of the control socket's warning_kinds */
    const char *text; /* for people */
};

struct mdl_io {
    char *name;    /* owned; tensor_name() of the file's */
    size_t tensor; /* its tensor; row-major and dense in the frame's buffer */
    size_t bytes;
    /* inputs only: the COPY op that copies the input into the arena, if no other op reads the
     * input. An image is then converted straight into that op's output, and the op is skipped.
     * Otherwise MDL_NONE: an image is converted into the arena at the input storage's offset, dense
     * row-major. */
    size_t entry_op;
    /* outputs only, of a length that depends on the data: the tensor has the largest length along
     * dim rows_dim, and zeros after the valid rows. Output rows_output - 1 says how many are valid
     * (i64, one element). rows_output 0: all are. */
    size_t rows_output, rows_dim;
};

#define MDL_PAD_DEFAULT 114 /* of letterbox bars: what YOLO is trained with */

/* How an image becomes input 0: x = (pixel - mean[c]) / std[c], pixel in 0..255, after resizing to
 * the input's H x W. */
struct mdl_preproc {
    bool known; /* false: the model has no sidecar; defaults: mean 0, std 1, RGB, stretch */
    bool given; /* the sidecar has preprocessing */
    float mean[4];
    float std[4];
    bool bgr;  /* channel order of the model's input */
    bool nhwc; /* input 0 is [N][H][W][C] instead of [N][C][H][W] */
    enum {
        MDL_FIT_STRETCH,
        MDL_FIT_CROP,
        MDL_FIT_LETTERBOX
    } fit; /* how an image of another aspect ratio is fitted */
    /* letterbox: the bars, as pixels of the model's channels: 0..255 before mean and std */
    float pad[4];
    size_t pad_given; /* how many of them; 0: one for all */
};

/* A model that is a segment of another (model/segment/segment.h). */
struct mdl_segment_of {
    size_t first_unit, last_unit; /* of the whole model, both included */
    size_t unit_count;            /* of the whole model */
    char front[65], back[65];     /* hashes of the borders before and after it */
};

/* A file beside the model's, as it was when the model was loaded. */
struct mdl_data_file {
    char *path; /* owned; as the model's path, with the name that the model gives the file */
    uint64_t device, inode, bytes, mtime_ns;
};
/* Those that the sidecar names. */
enum { MDL_SIDE_LABELS, MDL_SIDE_ALPHABET, MDL_SIDE_FILES };

#define MDL_IDENTITY_MAX 128u

struct mdl_model {
    char *name;    /* owned: as given to mdl_load() */
    char hash[65]; /* 256-bit hash of the model's bytes in hex, data files included; a segment has
                    * the whole's */
    /* key of learned costs: hash, "@" and a digest of the sizes that open dimensions were given, if
     * any, and "#17-44" if a segment */
    char identity[MDL_IDENTITY_MAX];
    struct mdl_segment_of *segment; /* owned; NULL: a whole model */
    size_t storage_count, tensor_count, op_count, unit_count, input_count, output_count;
    struct mdl_storage *storages; /* all owned by the model */
    struct mdl_tensor *tensors;
    struct mdl_op *ops;
    struct mdl_unit *units;
    struct mdl_io *inputs;
    struct mdl_io *outputs;
    size_t arena_bytes;  /* of one frame, multiple of 64 */
    size_t tensor_bytes; /* bytes of all values that the nodes compute at run time, as if nothing
                          * were fused or shared (for the memory ratio) */
    size_t weight_bytes; /* constants that heavy ops read */
    double macs;
    struct mdl_preproc preproc;
    /* owned: its input looks like a picture, and nothing says how pictures become that input; for
     * people. NULL: no doubt */
    char *doubt;
    char **labels; /* label_count strings, owned, or NULL */
    size_t label_count;
    char *output; /* owned: how clients decode, as JSON (docs/outputs.md); NULL: unknown */
    struct mdl_data_file *data_files; /* with weights: data_file_count of them, owned; a segment has
                                       * the whole's */
    size_t data_file_count;
    struct mdl_data_file side_files[MDL_SIDE_FILES]; /* path NULL: the sidecar names none */
    struct mdl_private *private;                     /* owned: the file mapping, the pool */
};

/**
 * mdl_const_eval_fn - runs one op whose inputs are all constant, at load
 * @m: a model under construction that holds just this op (index 0): inputs CONST, outputs ARENA
 * @arena: m->arena_bytes, 64-byte aligned
 * The caller supplies it, because operators are in kernels/. Return: 0, or -EOPNOTSUPP.
 */
typedef int (*mdl_const_eval_fn)(const struct mdl_model *m, void *arena);

struct mdl_calibration;
struct mdl_graph;
struct mdl_leaves;

/* A refusal gives all its reasons: every operator that is not supported, and every other node that
 * cannot be served as far as that is known. A node that needs the result of a refused one is not
 * looked at. */
enum mdl_reason_kind {
    MDL_REASON_OPERATOR, /* the operator is not supported, or not in this version */
    MDL_REASON_NODE,     /* the operator is, but not as this node uses it */
    MDL_REASON_INPUT,    /* a graph input: no type, an open dimension */
};

struct mdl_reason {
    enum mdl_reason_kind kind;
    int code;          /* -errno */
    long long version; /* of the operator set, where the operator is not known so; else 0 */
    char *op_type;     /* owned, as the others; "" for an input */
    char *domain;      /* "": ONNX's own */
    char *node;        /* the node's name, or its first output's, or the input's name */
    char *text;        /* the whole sentence, as mdl_load() gives it if it is the only one */
};

#define MDL_REASONS_MAX 1000u /* more are counted, but not kept */

struct mdl_reasons {
    struct mdl_reason *list; /* owned */
    size_t count, total;     /* kept; found */
};

/** mdl_reasons_deinit() - frees the list. */
void mdl_reasons_deinit(struct mdl_reasons *r);

struct mdl_load_options {
    const char *name;             /* model name, copied */
    size_t weight_bytes_max;      /* limit; 0: 4 GiB */
    size_t arena_bytes_max;       /* limit; 0: 2 GiB */
    mdl_const_eval_fn const_eval; /* may be NULL: only shape arithmetic is folded */
    bool no_fusion;               /* for tests: one op per node, no folding into producers */
    size_t threads; /* threads that may share the work of the call, the caller's included; 0: 1 */
    /* folder for an unnamed file with the generated weights of a network description, so that their
     * pages can be dropped like those of a model's file. NULL, a folder in memory, or a full one:
     * the weights stay in memory */
    const char *weights_dir;
    bool no_weights; /* of a network description: they stay 0, for who looks at shapes only */
    /* quantises the model (model/quant/calibration.h), borrowed; NULL: no quantisation */
    const struct mdl_calibration *calibration;
    /* the leaf list of a file of which only some leaves are there (base/leaves/leaves.h),
     * borrowed: these are checked, and the hash is the list's. Such a model is for mdl_segment()
     * only. NULL: the whole file is there */
    const struct mdl_leaves *leaves;
    /* sizes of open dimensions, as in model/open_shapes.h: "images=1x3x480x640,height=480". They
     * come before those of the sidecar. NULL: none */
    const char *shapes;
    /* called with the network as the file has it, before anything of it is refused, and again if
     * sizes are open still, with the others settled; NULL: nobody looks */
    void (*look)(void *arg, const struct mdl_graph *g);
    void *look_arg;
    /* gets all the reasons of a refusal, which the error sums up; the caller's,
     * empty before; NULL: only the error */
    struct mdl_reasons *reasons;
};

/**
 * mdl_load() - reads an ONNX file (*.onnx) or a network description (*.json) and compiles it to
 * units
 * @path: the file; a sidecar <path without extension>.sidecar.json beside it may describe
 * preprocessing and labels
 * @options: borrowed during the call; NULL: defaults, named after the file
 * @ret_error: on failure a sentence that names the nodes and the reasons, as many as fit;
 * NUL-terminated, at most MDL_ERROR_MAX bytes
 * @ret: owned by the caller, mdl_free()
 *
 * The file is mapped. Weights of heavy operators (the first two inputs of CONV, CONV_TRANSPOSE,
 * GEMM, MATMUL, RECURRENT) are never copied: they point into the mapping, which lives as long as
 * the model. All other constants are copied. So only packing reads the file's pages later, and a
 * file that is truncated later harms only that (docs/models.md). Hostile files are refused: sizes,
 * nesting depth and counts are checked first. Threads: any; blocks on the file; allocates. Return:
 * 0, -errno of a system call, -EBADMSG for a malformed file, -EOPNOTSUPP for an operator or
 * attribute that is not supported, -E2BIG past a limit, -ENOMEM.
 */
int mdl_load(const char *path, const struct mdl_load_options *options,
             char ret_error[MDL_ERROR_MAX], struct mdl_model **ret);

/** mdl_integer_ops() - Return: how many operators compute on quantised integers. */
size_t mdl_integer_ops(const struct mdl_model *m);

/** mdl_free() - frees the model and its mapping. Accepts NULL. Return: NULL. */
struct mdl_model *mdl_free(struct mdl_model *m);

/**
 * mdl_drop_op_weights() - tells the kernel (madvise) that it may drop the pages of op @op's
 * constant inputs in the file mapping, since they are packed. They stay readable. Threads: the
 * loader's.
 */
void mdl_drop_op_weights(const struct mdl_model *m, size_t op);

/** mdl_drop_weights() - the same for the whole file mapping. Threads: any. */
void mdl_drop_weights(const struct mdl_model *m);
