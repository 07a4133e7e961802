/* SPDX-License-Identifier: Apache-2.0 */
/**
 * client.h - clients of several models at given rates, for piped and for ONNX Runtime
 *
 * When frames are due follows from rates and a seed alone, so two programs get the same frames. A
 * frame counts from when it was due, whenever it could be handed over. A model has at most `limit`
 * frames that are not answered; one that is due beyond that is refused at once, as by a camera
 * whose buffers are full.
 *
 * In a slice without a clock no frame is refused: the next one goes as soon as its model has room,
 * in the same order. So all models get on by the same part of their rates, as fast as the program
 * can.
 *
 * client.c holds main() and what is due; piped.c and ort.c each implement mix_open() and
 * mix_serve(), of which a program has one.
 */
#ifndef BENCH_MIX_CLIENT_H
#define BENCH_MIX_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIX_MODELS_MAX 16
#define MIX_CPUS_MAX 16
#define MIX_RANK_MAX 8
#define MIX_REFUSED 1ull /* as the time of an answer: there was no room, or the frame failed */

struct mix_model {
    const char *name, *file;
    void *input; /* owned */
    size_t input_bytes;
    int64_t shape[MIX_RANK_MAX];
    size_t rank;
    uint64_t deadline_ns;
    /* what follows is of the present slice */
    double rate;     /* frames a second; 0: none */
    uint64_t random; /* state of the generator */
    double phase;    /* of the beat, in periods */
    double next_s;   /* when the next frame is due, from the start on */
    uint64_t *due;   /* owned, [count] */
    uint64_t *done;  /* owned, [count]: when answered, MIX_REFUSED, or 0: not yet */
    size_t count, capacity, in_flight;
};

struct mix {
    struct mix_model models[MIX_MODELS_MAX];
    size_t count;
    size_t limit;
    const char *way, *library;
    bool spin;
    int cpus[MIX_CPUS_MAX];
    size_t cpu_count;
    bool clock; /* of the slice: frames are due by their rates */
    double seconds;
    uint64_t start_ns;
};

/**
 * mix_open() - connects or loads, and warms up
 *
 * Return: 0; -1: it failed and has been said.
 */
int mix_open(struct mix *mix);

/**
 * mix_serve() - hands over every frame of the slice when it is due and waits for all answers
 *
 * Return: 0; -1: it failed and has been said.
 */
int mix_serve(struct mix *mix);

/**
 * mix_next() - takes the next frame that is to be handed over
 *
 * @ret_model, @ret_frame: its model and its number there, if there is one
 *
 * Return: 0: there is one; else CLOCK_MONOTONIC when the next one is due; UINT64_MAX: none, or not
 * before an answer comes.
 */
uint64_t mix_next(struct mix *mix, size_t *ret_model, size_t *ret_frame);

/** mix_answer() - a frame that was handed over has its answer, or failed (MIX_REFUSED) */
void mix_answer(struct mix_model *model, size_t frame, uint64_t done_ns);

/** mix_in_flight() - Return: frames of all models that are not answered. */
size_t mix_in_flight(const struct mix *mix);

#endif
