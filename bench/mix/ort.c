/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models on ONNX Runtime, in one process. The ways:
 *
 *   pools     a session a model with the pool that it makes by default; a thread a model calls it
 *   shared    the same, but all sessions use the process's global pool
 *   pinned    a session of one thread for each model and core, called by a thread that is pinned
 *             there; a model's frame goes to whichever is free
 *   deadline  as pinned, but a core has one thread for all models, which takes the frame with the
 *             earliest deadline: the most that clients can do without cutting frames
 *
 * --spin 0: threads of pools that wait do not spin.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "bench/mix/client.h"
#include "bench/mix/ort_api.h"

#define OUTPUTS_MAX 8
#define WARM_FRAMES 3
#define ANY_CORE (-1)
#define ANY_MODEL SIZE_MAX

struct session {
    void *session; /* until the process ends, as everything of ONNX Runtime here */
    char *input, *outputs[OUTPUTS_MAX];
    size_t output_count;
};

/* Frames that wait for a session, in the order in which they came. */
struct queue {
    size_t *frames; /* owned, ring of mix->limit + 1 */
    size_t head, count;
};

struct worker {
    pthread_t thread;
    struct mix *mix;
    size_t model;             /* ANY_MODEL: all */
    int cpu;                  /* ANY_CORE: not pinned */
    struct session *sessions; /* borrowed: [model] */
};

static void *const *api;
static void *inputs[MIX_MODELS_MAX];
static struct session sessions[MIX_CPUS_MAX][MIX_MODELS_MAX];
static struct worker workers[MIX_CPUS_MAX * MIX_MODELS_MAX];
static size_t worker_count;

/* lock guards queues and the models' slices */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static struct queue queues[MIX_MODELS_MAX];

#define ort(slot, type) ((type *)api[slot])

static int failed(const char *what, ort_status status)
{
    fprintf(stderr, "mix_ort: %s: %s\n", what,
            status ? ort(ORT_GET_ERROR_MESSAGE, ort_message_fn)(status) : "failed");
    return -1;
}

static int run(const struct session *s, size_t model)
{
    const char *const *names = (const char *const *)s->outputs, *input = s->input;
    const void *value = inputs[model];
    void *outputs[OUTPUTS_MAX] = {0};
    ort_status status = ort(ORT_RUN, ort_run_fn)(s->session, NULL, &input, &value, 1, names,
                                                 s->output_count, outputs);

    for (size_t i = 0; i < s->output_count; i++) {
        ort(ORT_RELEASE_VALUE, ort_release_fn)(outputs[i]);
    }
    return status ? failed("run", status) : 0;
}

static int name_tensors(struct session *s)
{
    void *allocator;
    ort_status status = ort(ORT_GET_ALLOCATOR, ort_create_fn)(&allocator);

    if (!status) {
        status = ort(ORT_GET_INPUT_NAME, ort_name_fn)(s->session, 0, allocator, &s->input);
    }
    if (!status) {
        status = ort(ORT_GET_OUTPUT_COUNT, ort_count_fn)(s->session, &s->output_count);
    }
    if (!status && s->output_count > OUTPUTS_MAX) {
        return failed("too many outputs", NULL);
    }
    for (size_t i = 0; !status && i < s->output_count; i++) {
        status = ort(ORT_GET_OUTPUT_NAME, ort_name_fn)(s->session, i, allocator, &s->outputs[i]);
    }
    return status ? failed("names", status) : 0;
}

/* threads: 0: as by default, of its own or, if shared, of the process. */
static int open_session(const struct mix *mix, void *env, size_t model, int threads, bool shared,
                        struct session *s)
{
    void *options;
    ort_status status = ort(ORT_CREATE_SESSION_OPTIONS, ort_create_fn)(&options);

    if (!status) {
        status = ort(ORT_SET_GRAPH_OPTIMIZATION_LEVEL, ort_set_fn)(options, ORT_OPTIMIZE_ALL);
    }
    if (!status) {
        status = shared ? ort(ORT_NO_OWN_THREADS, ort_touch_fn)(options)
                        : ort(ORT_SET_INTRA_OP_THREADS, ort_set_fn)(options, threads);
    }
    if (!status && !mix->spin) {
        status = ort(ORT_ADD_SESSION_CONFIG, ort_config_fn)(options,
                                                            "session.intra_op.allow_spinning", "0");
    }
    if (!status) {
        status = ort(ORT_CREATE_SESSION, ort_create_session_fn)(env, mix->models[model].file,
                                                                options, &s->session);
    }
    return status ? failed(mix->models[model].file, status) : name_tensors(s);
}

static int open_env(const struct mix *mix, bool shared, void **ret)
{
    void *threading;
    ort_status status;

    if (!shared) {
        status = ort(ORT_CREATE_ENV, ort_create_env_fn)(ORT_WARNING, "mix", ret);
        return status ? failed("environment", status) : 0;
    }
    status = ort(ORT_CREATE_THREADING, ort_create_fn)(&threading);
    if (!status) {
        status = ort(ORT_SET_GLOBAL_SPIN, ort_set_fn)(threading, mix->spin);
    }
    if (!status) {
        status = ort(ORT_CREATE_ENV_WITH_POOLS, ort_create_env_with_pools_fn)(ORT_WARNING, "mix",
                                                                              threading, ret);
    }
    return status ? failed("environment", status) : 0;
}

static int open_library(const struct mix *mix)
{
    void *library = mix->library ? dlopen(mix->library, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct ort_base *(*get_base)(void);
    void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;

    memcpy(&get_base, &symbol, sizeof(get_base));
    api = symbol ? get_base()->get_api(ORT_VERSION_ASKED) : NULL;
    if (!api) {
        fprintf(stderr, "mix_ort: no ONNX Runtime: %s\n", library ? "too old" : dlerror());
        return -1;
    }
    return 0;
}

static int make_inputs(struct mix *mix)
{
    void *memory;
    ort_status status =
        ort(ORT_CREATE_CPU_MEMORY, ort_memory_fn)(ORT_ARENA, ORT_MEMORY_DEFAULT, &memory);

    for (size_t i = 0; !status && i < mix->count; i++) {
        struct mix_model *m = &mix->models[i];

        status = ort(ORT_CREATE_TENSOR, ort_tensor_fn)(memory, m->input, m->input_bytes, m->shape,
                                                       m->rank, ORT_FLOAT, &inputs[i]);
    }
    return status ? failed("inputs", status) : 0;
}

/* The model whose frame a worker takes next; ANY_MODEL: none waits. The lock is held. */
static size_t choose(const struct worker *w)
{
    size_t best = ANY_MODEL;
    uint64_t earliest = UINT64_MAX;

    if (w->model != ANY_MODEL) {
        return queues[w->model].count ? w->model : ANY_MODEL;
    }
    for (size_t i = 0; i < w->mix->count; i++) {
        const struct mix_model *m = &w->mix->models[i];
        const struct queue *q = &queues[i];

        if (q->count && m->due[q->frames[q->head]] + m->deadline_ns < earliest) {
            earliest = m->due[q->frames[q->head]] + m->deadline_ns;
            best = i;
        }
    }
    return best;
}

/* The lock is held. */
static void push(struct mix *mix, size_t model, size_t frame)
{
    struct queue *q = &queues[model];

    q->frames[(q->head + q->count++) % (mix->limit + 1)] = frame;
    pthread_cond_broadcast(&queued);
}

static void *work(void *worker)
{
    struct worker *w = worker;
    cpu_set_t set;

    if (w->cpu != ANY_CORE) {
        CPU_ZERO(&set);
        CPU_SET((size_t)w->cpu, &set);
        pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    }
    pthread_mutex_lock(&lock);
    for (;;) {
        size_t model = choose(w), frame;
        struct queue *q;
        int error;

        if (model == ANY_MODEL) {
            pthread_cond_wait(&queued, &lock);
            continue;
        }
        q = &queues[model];
        frame = q->frames[q->head];
        q->head = (q->head + 1) % (w->mix->limit + 1);
        q->count--;
        pthread_mutex_unlock(&lock);
        error = run(&w->sessions[model], model);
        pthread_mutex_lock(&lock);
        mix_answer(&w->mix->models[model], frame, error ? MIX_REFUSED : base_now_ns());
        pthread_cond_signal(&answered);
    }
    return NULL;
}

static int start(struct mix *mix, size_t model, int cpu, struct session *of)
{
    struct worker *w = &workers[worker_count++];

    *w = (struct worker){.mix = mix, .model = model, .cpu = cpu, .sessions = of};
    return pthread_create(&w->thread, NULL, work, w) != 0 ? failed("no thread", NULL) : 0;
}

/* Sessions of the way, warmed up, and their threads. */
static int open_way(struct mix *mix, void *env)
{
    bool by_core = strcmp(mix->way, "pinned") == 0 || strcmp(mix->way, "deadline") == 0;
    bool one_worker = strcmp(mix->way, "deadline") == 0, shared = strcmp(mix->way, "shared") == 0;

    for (size_t core = 0; core < (by_core ? mix->cpu_count : 1); core++) {
        int cpu = by_core ? mix->cpus[core] : ANY_CORE;

        for (size_t i = 0; i < mix->count; i++) {
            if (open_session(mix, env, i, by_core, shared, &sessions[core][i]) != 0) {
                return -1;
            }
            for (size_t k = 0; k < WARM_FRAMES; k++) {
                if (run(&sessions[core][i], i) != 0) {
                    return -1;
                }
            }
        }
        for (size_t i = 0; i < (one_worker ? 1 : mix->count); i++) {
            if (start(mix, one_worker ? ANY_MODEL : i, cpu, sessions[core]) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

int mix_open(struct mix *mix)
{
    void *env;

    if (!mix->way || mix->cpu_count == 0) {
        fputs("mix_ort: --way or --cpus is missing\n", stderr);
        return -1;
    }
    for (size_t i = 0; i < mix->count; i++) {
        queues[i].frames = calloc(mix->limit + 1, sizeof(size_t));
        if (!queues[i].frames) {
            return failed("no memory", NULL);
        }
    }
    if (open_library(mix) != 0 || open_env(mix, strcmp(mix->way, "shared") == 0, &env) != 0 ||
        make_inputs(mix) != 0) {
        return -1;
    }
    return open_way(mix, env);
}

int mix_serve(struct mix *mix)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        size_t model, frame;
        uint64_t due = mix_next(mix, &model, &frame);

        if (due == 0) {
            push(mix, model, frame);
        } else if (due == UINT64_MAX && mix_in_flight(mix) == 0) {
            break;
        } else if (due == UINT64_MAX) {
            pthread_cond_wait(&answered, &lock);
        } else {
            struct timespec at = {.tv_sec = (time_t)(due / BASE_NS_PER_S),
                                  .tv_nsec = (long)(due % BASE_NS_PER_S)};

            pthread_mutex_unlock(&lock);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
            pthread_mutex_lock(&lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}
