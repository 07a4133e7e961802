/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ort_api.h - what mix_ort calls of ONNX Runtime's C interface
 *
 * The npm package onnxruntime-node has the library without its header. The interface is a table of
 * functions whose order never changes (new ones come at its end), so a number finds each.
 */
#ifndef BENCH_MIX_ORT_API_H
#define BENCH_MIX_ORT_API_H

#include <stddef.h>
#include <stdint.h>

#define ORT_VERSION_ASKED 14
#define ORT_WARNING 3 /* the least that is logged: errors */
#define ORT_OPTIMIZE_ALL 99
#define ORT_ARENA 1
#define ORT_MEMORY_DEFAULT 0
#define ORT_FLOAT 1

enum ort_slot {
    ORT_GET_ERROR_MESSAGE = 2,
    ORT_CREATE_ENV = 3,
    ORT_CREATE_SESSION = 7,
    ORT_RUN = 9,
    ORT_CREATE_SESSION_OPTIONS = 10,
    ORT_SET_GRAPH_OPTIMIZATION_LEVEL = 23,
    ORT_SET_INTRA_OP_THREADS = 24,
    ORT_SET_INTER_OP_THREADS = 25,
    ORT_GET_OUTPUT_COUNT = 31,
    ORT_GET_INPUT_NAME = 36,
    ORT_GET_OUTPUT_NAME = 37,
    ORT_CREATE_TENSOR = 49,
    ORT_CREATE_CPU_MEMORY = 69,
    ORT_GET_ALLOCATOR = 78,
    ORT_RELEASE_VALUE = 96,
    ORT_CREATE_ENV_WITH_POOLS = 119,
    ORT_NO_OWN_THREADS = 120,
    ORT_CREATE_THREADING = 121,
    ORT_ADD_SESSION_CONFIG = 130,
    ORT_SET_GLOBAL_SPIN = 149
};

typedef void *ort_status; /* NULL: good */

struct ort_base {
    void *const *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

typedef const char *ort_message_fn(ort_status status);
typedef ort_status ort_create_env_fn(int level, const char *name, void **ret);
typedef ort_status ort_create_env_with_pools_fn(int level, const char *name, void *threading,
                                                void **ret);
typedef ort_status ort_create_fn(void **ret);
typedef ort_status ort_create_session_fn(void *env, const char *path, void *options, void **ret);
typedef ort_status ort_set_fn(void *options, int value);
typedef ort_status ort_touch_fn(void *options);
typedef ort_status ort_config_fn(void *options, const char *key, const char *value);
typedef ort_status ort_count_fn(void *session, size_t *ret);
typedef ort_status ort_name_fn(void *session, size_t number, void *allocator, char **ret);
typedef ort_status ort_memory_fn(int allocator, int type, void **ret);
typedef ort_status ort_tensor_fn(void *memory, void *data, size_t bytes, const int64_t *shape,
                                 size_t rank, int type, void **ret);
typedef ort_status ort_run_fn(void *session, void *options, const char *const *input_names,
                              const void *const *inputs, size_t input_count,
                              const char *const *output_names, size_t output_count, void **outputs);
typedef void ort_release_fn(void *value);

#endif
