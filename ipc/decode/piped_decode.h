/* SPDX-License-Identifier: Apache-2.0 */
/**
 * piped_decode.h - libpiped: a model's outputs as objects, points, text and masks
 *
 *     struct piped_decoder *d = NULL;
 *     const struct piped_decoded *r;
 *     piped_infer(s, f, -1);
 *     piped_decoder_follow(&d, s);
 *     piped_decode_frame(d, s, f, &r);     r->objects[0].x, r->objects[0].label
 *     piped_decoder_free(d);
 *
 * The description comes from the key `output` of the model's sidecar (docs/outputs.md), which names
 * the decoder and its parameters.
 *
 * Coordinates are pixels of the picture that was sent, before it was resized, cropped or
 * letterboxed: (0, 0) is the upper left corner of the upper left pixel, (width, height) the lower
 * right corner of the picture. With u a coordinate of the model's input, that is
 *
 *     x = src0 + (u - dst0) * src / dst
 *
 * where [src0, src0 + src) is the part of the picture that went to [dst0, dst0 + dst) of the input.
 * Objects are clipped to the picture. A stream of tensors has no picture: coordinates are then
 * those of the model's input.
 *
 * What has a score or a corner that is NaN or infinite is no object. Beside such a score no class
 * is the best, so the decoder `classes` fails with -EDOM.
 *
 * Threads: one thread at a time may use a decoder. Different decoders are independent.
 *
 * Errors: functions return a negative errno; piped_last_error() returns a sentence.
 */
#ifndef PIPED_DECODE_H
#define PIPED_DECODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PIPED_API
#define PIPED_API __attribute__((visibility("default")))
#endif

struct piped_frame;
struct piped_stream;
struct piped_tensor;
struct piped_decoder; /* how one model's outputs are decoded, and the last result */

struct piped_point {
    float x, y;
    float score; /* 1 where the model gives none */
};

struct piped_object {
    float x, y, width, height; /* upper left corner and size; classes: 0 */
    float score;
    /* mask: pixels of the picture that it covers; else of the quadrilateral or the box */
    float area;
    int32_t number;    /* of the class; -1: the model knows no classes */
    const char *label; /* of the class; NULL: none is known; as long as the decoder */
    uint32_t point_first, point_count; /* its points, in piped_decoded.points */
};

/* Which class each part of the picture belongs to. Element [row][column] covers the rectangle at
 * x + column * width / columns, y + row * height / rows, of size width / columns, height / rows. It
 * may reach beyond the picture (letterbox), or miss some of it (crop). */
struct piped_mask {
    const uint8_t *classes; /* [rows][columns]; 255: none */
    uint32_t columns, rows;
    float x, y, width, height;
};

/* A result: valid until the decoder's next call. Later versions may add fields at the end. */
struct piped_decoded {
    const char *kind;       /* "yolo", ... */
    uint32_t width, height; /* of the picture */
    /* from the highest score down; dbnet: from top to bottom, then from left to right */
    const struct piped_object *objects;
    size_t object_count;
    const struct piped_point *points; /* dbnet: four corners of an object, clockwise */
    size_t point_count;
    const char *text;              /* ctc: UTF-8; else NULL */
    float text_score;              /* mean of the scores of its characters; 0 if it is empty */
    const struct piped_mask *mask; /* mask; else NULL */
};

/**
 * piped_decoder_new() - prepares decoding
 *
 * @description: of piped_stream_description(); copied     @outputs: of piped_stream_info(); copied
 * @output_count: how many     @ret: the decoder; the caller owns it until piped_decoder_free()
 *
 * Blocks on nothing; allocates. Return: 0; -ENODATA: there is no
 * description; -EINVAL: it makes no sense, or does not fit the outputs; -ENOMEM.
 */
PIPED_API int piped_decoder_new(const char *description, const struct piped_tensor *outputs,
                                uint32_t output_count, struct piped_decoder **ret);
/**
 * piped_decoder_follow() - a decoder for the frame that its stream gave last
 *
 * For each frame, before piped_decode_frame(): a model may be replaced while its clients go on, and
 * what its sidecar says with it. As long as that stays the same, the decoder does.
 *
 * @d: the decoder, NULL before the first call; the caller owns it until piped_decoder_free()
 * @s: the stream
 *
 * Blocks on nothing; allocates what is new. Return: 0; else as piped_decoder_new(), and *@d is
 * NULL.
 */
PIPED_API int piped_decoder_follow(struct piped_decoder **d, const struct piped_stream *s);
/**
 * piped_decoder_free() - frees a decoder and its last result
 *
 * @d: may be NULL
 *
 * Return: NULL.
 */
PIPED_API struct piped_decoder *piped_decoder_free(struct piped_decoder *d);

/**
 * piped_decode() - decodes the outputs of one frame
 *
 * @d: the decoder
 * @output: the frame's output area: each tensor at its offset; borrowed during the call
 * @rows: of each output, how many rows are valid (piped_rows()); NULL: all
 * @width, @height: of the picture that was sent; 0: no picture, coordinates of the model's input
 * @ret: the result, which the decoder owns, valid until its next call
 *
 * May allocate. Return: 0; -EINVAL: a size of 0; -EDOM: a class has the score NaN or infinity;
 * -ENOMEM.
 */
PIPED_API int piped_decode(struct piped_decoder *d, const void *output, const uint64_t *rows,
                           uint32_t width, uint32_t height, const struct piped_decoded **ret);

/**
 * piped_decode_frame() - the same for an answered frame with PIPED_OK
 *
 * The picture has the frame's width and height, or the stream's.
 *
 * @d: the decoder     @s: the stream
 * @f: one of its frames, from piped_next() to piped_release()
 * @ret: as of piped_decode()
 *
 * Return: as piped_decode(); also -EINVAL: the frame has no answer.
 */
PIPED_API int piped_decode_frame(struct piped_decoder *d, const struct piped_stream *s,
                                 const struct piped_frame *f, const struct piped_decoded **ret);

/* A class of a classifier, for piped_decode_classes(). */
struct piped_class {
    int32_t number;
    float score;       /* as the model gives it */
    float probability; /* after the activation of the description */
    const char *label; /* NULL: none is known; as long as the decoder */
};

/**
 * piped_decode_classes() - the best classes of one frame, however unlikely
 *
 * Their probabilities are the scores that piped_decode() gives.
 *
 * @d: the decoder     @output: as of piped_decode()     @most: how many classes at most
 * @ret: the classes, the best first; the decoder owns them, valid until its next call
 * @ret_count: how many
 *
 * May allocate. Return: 0; -EINVAL: "decode" is not "classes"; -EDOM: a score is NaN or infinity;
 * -ENOMEM.
 */
PIPED_API int piped_decode_classes(struct piped_decoder *d, const void *output, uint32_t most,
                                   const struct piped_class **ret, uint32_t *ret_count);

#ifdef __cplusplus
}
#endif
#endif
