/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/daemon/streams_rig.h - a client's frames on real pipelines, without a daemon
 *
 * A socket pair, the rooms frames/ and models/, and a client that counts. Nothing is collected
 * before the test says so, so a pipeline of two frames is full after two.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/frames/clients.h"
#include "daemon/frames/stream.h"
#include "daemon/machine/machine.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

#define IN_FLIGHT 2u
#define UNITS 3u
#define FRAMES_MAX 4096u
#define STREAMS 2u
#define SENT_MAX 24u /* unanswered: more than a ring takes, less than a socket */

struct fixture {
    struct dmn_machine machine;
    struct dmn_models models;
    struct dmn_loop_turns turns;
    struct dmn_frames frames;
    struct dmn_config *config;
    struct dmn_account account;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct rig_wake wake;
    uv_loop_t loop;
    struct dmn_model *m;
    int fd; /* the client's end */
    bool closed;
    uint8_t in[1 << 20];
    size_t used;
    /* what the client saw, of each stream */
    uint64_t sent[STREAMS + 1], answered[STREAMS + 1], last[STREAMS + 1];
    enum ipc_status status[STREAMS + 1][FRAMES_MAX];
    char text[IPC_TEXT_MAX]; /* of the newest answer without output */
    unsigned unloading, wrong;
    char order[64]; /* of stream 1: r for a RESULT, (TEXT) for a DESCRIBED */
};

/** fixture_new() - with a model "tiny" and a client that has said hello. Pair with take_down(). */
struct fixture *fixture_new(void);
/** take_down() - ends all, and checks that each frame had its answer; frees the fixture. */
void take_down(struct fixture *f);
struct dmn_model *model_new(struct fixture *f, const char *name);
/** model_free() - its network is the fixture's. */
void model_free(struct dmn_model *m);

void open_stream(struct fixture *f, uint32_t id, enum ipc_policy policy, uint32_t credits);
void send_frame(struct fixture *f, uint32_t id);
void send_frames(struct fixture *f, uint32_t id, unsigned count);
void cancel(struct fixture *f, uint32_t id, uint64_t frame);
/** look() - takes in what the daemon wrote. */
void look(struct fixture *f);
/** collect() - what the daemon's loop does when a team wakes it, and then a socket. */
void collect(struct fixture *f);
/** serve() - until everything is answered. */
void serve(struct fixture *f);
