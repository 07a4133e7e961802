/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/fuzz/talker.h - a client of the frames socket that remembers what it sent and judges every
 * answer
 *
 * For each frame it knows which answers are right: which statuses, and by which files of its model
 * the output may have been computed. Outputs are compared with the first one of the same picture,
 * format and file.
 *
 * A client that has sent bytes that make no sense ("lies") may be cut off, and only answers to
 * others' frames are wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/wire.h"
#include "tests/fuzz/daemon_rig.h"

#define TALK_STREAMS 6u
#define TALK_SENT 192u
#define TALK_SLOTS 16u
#define TALK_PICTURES 4u
#define TALK_BUFFER 65536u

enum talk_model { TALK_A, TALK_B, TALK_C, TALK_DEFAULT, TALK_NONE, TALK_MODELS };

/* How the pictures of a stream are sent and its outputs returned. */
struct talk_format {
    enum talk_model model;
    enum ipc_pixfmt pixfmt;
    bool in16, out16;
};

struct talk_stream {
    bool open;                          /* as the daemon has said */
    unsigned opening, closing, pooling; /* messages without an answer */
    bool pool;                          /* it has the client's pool */
    bool muddled;                       /* which format it has is not known */
    bool by_default;                    /* OPEN named no model */
    bool numbered;                      /* a frame came since it was opened */
    struct talk_format format;
    enum ipc_policy policy;
    bool hurries; /* its frames have a deadline */
    int64_t credits;
    uint64_t last_frame;
};

/* A frame without an answer. */
struct talk_sent {
    uint64_t cookie, frame;
    uint32_t stream, statuses; /* bits of those that are right */
    bool sure;                 /* the stream was open */
    bool judged;               /* the output can be compared */
    struct talk_format format;
    unsigned picture, wide, versions; /* bits of enum rig_file */
    int slot;                         /* of the pool; -1: inline */
};

struct talk_client {
    int fd;
    unsigned number;
    bool greeted, lying, paused, f16;
    unsigned pings;
    size_t sent_count, tx_bytes, hold, rx_bytes;
    int pool; /* a memfd, or -1 */
    uint8_t *memory;
    bool pool_lost, slot_used[TALK_SLOTS];
    int corrupt_at; /* the next message is damaged there; -1: it is not */
    uint8_t corrupt_with;
    struct talk_stream streams[TALK_STREAMS];
    struct talk_sent sent[TALK_SENT];
    uint8_t tx[TALK_BUFFER], rx[TALK_BUFFER];
};

/* What all clients know of the models. */
struct talk_models {
    unsigned versions[TALK_MODELS]; /* bits of enum rig_file: those that may serve now */
    bool unsteady;                  /* models may have gone, or come */
};
extern struct talk_models talk_models;

/** talk_connect() - @c is not connected. */
void talk_connect(struct talk_client *c, unsigned number, uid_t uid);
/** talk_leave() - closes the connection, if there is one, whatever is in flight. */
void talk_leave(struct talk_client *c);

/* What a client can send. @how: its variant, any byte. Without a connection, nothing happens. */
void talk_hello(struct talk_client *c, uint8_t how);
void talk_open(struct talk_client *c, uint32_t stream, const uint8_t how[3]);
void talk_pool(struct talk_client *c, uint32_t stream);
/** talk_frame() - how[0]: what is wrong with it, how[1]: picture, how[2]: shape and place. */
void talk_frame(struct talk_client *c, uint32_t stream, const uint8_t how[3]);
void talk_cancel(struct talk_client *c, uint32_t stream, uint8_t how);
void talk_close(struct talk_client *c, uint32_t stream);
void talk_ping(struct talk_client *c, uint8_t how);
void talk_unknown(struct talk_client *c, uint8_t how);
void talk_raw(struct talk_client *c, const uint8_t *bytes, size_t count);
/** talk_punch() - takes the pool's pages away. */
void talk_punch(struct talk_client *c);

/** talk_flush() - writes what was held back, too, if @all. */
void talk_flush(struct talk_client *c, bool all);
/** talk_read() - reads and judges answers. Return: there were some. */
bool talk_read(struct talk_client *c);
/** talk_settled() - Return: everything is answered that will be. */
bool talk_settled(const struct talk_client *c);
/** talk_versions_change() - models change: frames in flight may be computed by these, too. */
void talk_versions_change(struct talk_client *c, enum talk_model m, unsigned versions);

/* talker_pictures.c */
/** talk_input() - writes the bytes of a picture; they depend on nothing else. @wide: an image of
 * 8x4 pixels, else 6x6. Return: their number. */
size_t talk_input(const struct talk_format *f, unsigned picture, bool wide, uint8_t *ret);
/** talk_output_bytes() - Return: bytes of an output of that file. */
size_t talk_output_bytes(const struct talk_format *f, enum rig_file file);
/** talk_judge() - compares an output with the one known, or learns it. */
void talk_judge(const struct talk_sent *s, const uint8_t *output, size_t bytes);
