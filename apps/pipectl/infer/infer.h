/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/infer/infer.h - the parts of pipectl infer
 *
 * The files become a list of items, one per frame; a .f32, .f16, PPM or PGM file may hold several.
 * Items are sent in order, on one stream for each format, and reported in order as answers come.
 */
#pragma once

#include "apps/picture/picture.h"
#include "apps/pipectl/common/pipectl.h"
#include "ipc/decode/piped_decode.h"

#define INFER_STREAMS 4 /* tensor, rgb24, gray8, tensor of f16 */
#define INFER_F16 3
#define INFER_TENSORS "files that end in .f32, .f16 or .npy"

struct infer_item {
    size_t file;     /* index into files */
    size_t frame;    /* within its file */
    uint32_t format; /* enum piped_pixfmt */
    bool f16;        /* raw, of f16 */
    bool done;
    char *error;    /* owned: why there is no answer */
    json_t *report; /* owned: what --json prints */
    float *outputs; /* owned: all outputs as f32, for --raw */
    size_t output_count;
    int best;  /* highest class, -1: none */
    int drawn; /* an exit code */
};

struct infer_file {
    char *name; /* owned, as given */
    int copy;   /* of what can be read only once, such as standard input; -1: it is a file */
    char path[32];
};

struct infer {
    const struct ctl *ctl;
    struct ctl_options o;
    struct infer_file *files; /* owned */
    size_t file_count, file_room;
    struct infer_item *items;
    size_t item_count, item_room, reported;
    long *expected; /* owned, or NULL */
    size_t expected_count;
    struct piped *client;
    bool said_trouble; /* of it */
    struct piped_stream *streams[INFER_STREAMS];
    uint32_t most_width[INFER_STREAMS], most_height[INFER_STREAMS];
    size_t most_bytes[INFER_STREAMS];
    size_t frame_bytes[2];                /* of a raw frame; [true]: of f16 */
    char frame_text[2][320];              /* what it is made of */
    uint32_t rank, dim[PICTURE_DIMS_MAX]; /* of the only input; several: rank 0 */
    char not_floats[256];                 /* why raw files do not fit; "": they do */
    FILE *raw;
    struct piped_decoder *decoder;                    /* NULL: see not_decoded */
    char not_decoded[256];                            /* why there is none that fits, or "" ... */
    bool said;                                        /* ... and that was printed */
    size_t drawn;                                     /* files of --draw */
    uint32_t video_width, video_height, video_format; /* --video */
    size_t video_bytes;                               /* of a frame; 0: no video */
    size_t correct, failed;
    json_t *results; /* owned: reports in order */
};

/* files.c. Functions return an exit code and have printed the reason. */

/** infer_path() - Return: where to open file @i, as often as needed. */
const char *infer_path(const struct infer *in, size_t i);
int infer_add_path(struct infer *in, const char *path);
int infer_add_file(struct infer *in, const char *path); /* not opened here */
int infer_add_list(struct infer *in, const char *path);
int infer_read_expected(struct infer *in);
int infer_make_items(struct infer *in);
/** infer_has_f16() - Return: a file holds halves. */
bool infer_has_f16(const struct infer *in);

/* report.c */

/** infer_warn() - prints the daemon's warnings of the model to stderr; nothing where the control
 * socket is not for this user. */
void infer_warn(const struct infer *in);
/** infer_prepare() - opens --raw, when the decoder is known. Return: an exit
 * code. */
int infer_prepare(struct infer *in);

void infer_take_answer(struct infer *in, struct infer_item *item, const struct piped_frame *f,
                       const struct piped_stream *s);
/** infer_report_item() - prints or keeps the report of an item that is done, and frees it. Return:
 * an exit code: also, if nobody takes what is printed. */
int infer_report_item(struct infer *in, struct infer_item *item);
/** infer_report_next() - reports the next items as far as they are done. Return: an exit code. */
int infer_report_next(struct infer *in);
/** infer_finish() - prints what needs all answers. Return: the exit code of the command. */
int infer_finish(struct infer *in);

/* decoded.c */

/** infer_find_decoder() - makes in->decoder, for the frame that the stream gave last, if there is a
 * description; says why it cannot. */
void infer_find_decoder(struct infer *in, const struct piped_stream *s);
/** infer_begin_decoding() - the same of a stream that was opened, before infer_prepare(): --expect
 * needs the scores of classes. */
void infer_begin_decoding(struct infer *in, const struct piped_stream *s);
void infer_print_decoded(const json_t *report);

bool infer_draw_ok(const char *path); /* its ending is that of a format */
/** infer_draw() - draws on the frame's picture, into the next file of --draw. Return: an exit
 * code. */
int infer_draw(struct infer *in, const struct piped_decoded *r, const struct infer_item *item,
               const struct piped_frame *f);

/* video.c */

/** infer_video_format() - takes --video, as in "640x480:rgb24". Return: an exit code. */
int infer_video_format(struct infer *in, const char *text);
/** infer_video() - sends raw frames of in->files[0] until its end. Return: an exit code. */
int infer_video(struct infer *in);
