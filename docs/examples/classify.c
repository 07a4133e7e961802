/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classify IMAGE.pgm [MODEL] - the class of a grey picture, by the piped daemon
 *
 * cc classify.c $(pkg-config --cflags --libs libpiped) -o classify
 *
 * Prints the number of the largest output and its value. libpiped(3) and piped.h say more. The
 * user must be a member of the group piped-clients.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <piped.h>

#define SIDE_MAX 4096u

/* Return: the pixels, for free(), or NULL. */
static unsigned char *read_pgm(const char *path, unsigned *ret_width, unsigned *ret_height)
{
    FILE *f = fopen(path, "rb");
    unsigned char *pixels = NULL;
    unsigned width, height;
    size_t bytes;

    if (!f) {
        return NULL;
    }
    if (fscanf(f, "P5 %u %u 255", &width, &height) == 2 && fgetc(f) != EOF && width > 0 &&
        height > 0 && width <= SIDE_MAX && height <= SIDE_MAX) {
        bytes = (size_t)width * height;
        pixels = malloc(bytes);
        if (pixels && fread(pixels, 1, bytes, f) != bytes) {
            free(pixels);
            pixels = NULL;
        }
        *ret_width = width;
        *ret_height = height;
    }
    fclose(f);
    return pixels;
}

static void print_class(const float *values, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        best = values[i] > values[best] ? i : best;
    }
    printf("class %zu, %g\n", best, (double)values[best]);
}

/* Return: 0, or -1 with the reason in piped_last_error() or in the frame's text. */
static int classify(struct piped_stream *s, const unsigned char *pixels, size_t bytes)
{
    const struct piped_stream_info *info = piped_stream_info(s);
    struct piped_frame *f;
    int rc = -1;

    if (info->output_count == 0 || info->outputs[0].dtype != PIPED_F32) {
        fprintf(stderr, "the model's first output is not of floats\n");
        return -1;
    }
    if (piped_acquire(s, &f) < 0) {
        return -1;
    }
    /* The slot is shared with the daemon: nothing is copied after this. */
    memcpy(f->input, pixels, bytes);
    if (piped_infer(s, f, -1) < 0) {
        fprintf(stderr, "%s\n", piped_last_error());
    } else if (f->status != PIPED_OK) {
        fprintf(stderr, "%s: %s\n", piped_status_name(f->status), f->text);
    } else {
        const char *output = f->output;

        print_class((const float *)(const void *)(output + info->outputs[0].offset),
                    info->outputs[0].bytes / sizeof(float));
        rc = 0;
    }
    piped_release(s, f);
    return rc;
}

int main(int argc, char **argv)
{
    struct piped_stream_options options = {.size = sizeof(options), .pixfmt = PIPED_GRAY8};
    struct piped *p = NULL;
    struct piped_stream *s = NULL;
    unsigned char *pixels;
    int rc = -1;

    if (argc < 2) {
        fprintf(stderr, "usage: classify IMAGE.pgm [MODEL]\n");
        return 2;
    }
    pixels = read_pgm(argv[1], &options.width, &options.height);
    if (!pixels) {
        fprintf(stderr, "%s: not a binary PGM picture\n", argv[1]);
        return 1;
    }
    options.model = argc > 2 ? argv[2] : NULL;
    if (piped_connect(NULL, &p) < 0 || piped_stream_open(p, &options, &s) < 0) {
        fprintf(stderr, "%s\n", piped_last_error());
    } else {
        rc = classify(s, pixels, (size_t)options.width * options.height);
    }
    piped_stream_close(s);
    piped_close(p);
    free(pixels);
    return rc == 0 ? 0 : 1;
}
