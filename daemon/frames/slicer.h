/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/slicer.h - the thread that makes some rows of a model's input from an image, one
 * slice at a time
 *
 * It is not a team: it has no core of its own and a lower priority (SLICER_NICE), so teams that
 * want its core get nine tenths of it. It reads clients' memory and writes a record's buffer; both
 * must stay until the slice is back.
 *
 * Threads: the loop thread; the functions say when they wait.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/frames/admission.h"
#include "kernels/kernels.h"

struct dmn_slice {
    struct krn_image image;
    struct mdl_preproc preproc;
    struct mdl_tensor shape; /* of the input, dense; its name is not used */
    void *input;
    void *scratch; /* krn_preprocess_scratch_bytes(), 64-byte aligned */
    size_t begin, end;
    uint64_t took_ns; /* set by the thread */
};

struct dmn_record;

enum dmn_slicer_state {
    DMN_SLICER_IDLE,
    DMN_SLICER_BUSY,
    DMN_SLICER_BACK, /* the slice is done */
    DMN_SLICER_END
};

struct dmn_slicer {
    /* written by slicer.c */
    bool running; /* there is a thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uv_async_t async;
    /* under lock */
    enum dmn_slicer_state state;
    struct dmn_slice slice;
    /* the loop's; written by preparing.c */
    struct dmn_admission turns; /* of records that wait for their next slice */
    struct dmn_record *record;  /* whose slice the thread has */
    uint64_t expected_ns;       /* of that slice, see dmn_admission_taken() */
    uint8_t *scratch;           /* owned */
    size_t scratch_bytes;
};

/** dmn_slicer_start() - starts the thread. @back: called on the loop when a slice may be back;
 * @data becomes async.data. Return: 0; -errno: there is no thread, `running` stays false. */
int dmn_slicer_start(struct dmn_slicer *s, uv_loop_t *loop, uv_async_cb back, void *data);
/** dmn_slicer_stop() - waits for the slice in work and ends the thread. A second call does
 * nothing. */
void dmn_slicer_stop(struct dmn_slicer *s);
/** dmn_slicer_give() - hands over a slice; the thread is idle. */
void dmn_slicer_give(struct dmn_slicer *s, const struct dmn_slice *slice);
/** dmn_slicer_take_back() - Return: the slice is done, with *ret_took_ns set; false: there is none,
 * or it is still in work. */
bool dmn_slicer_take_back(struct dmn_slicer *s, uint64_t *ret_took_ns);
