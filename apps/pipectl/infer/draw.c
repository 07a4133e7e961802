/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer --draw: what a decoder found, on the picture that was sent. */
#include <stdio.h>
#include <string.h>

#include "apps/pipectl/infer/infer.h"
#include "apps/show/canvas.h"
#include "apps/show/draw_decoded.h"

/* "out.jpg" for the first frame, then "out-2.jpg" and so on. */
static void path_of(const struct infer *in, char *ret, size_t bytes)
{
    const char *dot = strrchr(in->draw_path, '.'); /* infer_draw_ok() saw it */

    if (in->drawn == 0) {
        snprintf(ret, bytes, "%s", in->draw_path);
    } else {
        snprintf(ret, bytes, "%.*s-%zu%s", (int)(dot - in->draw_path), in->draw_path, in->drawn + 1,
                 dot);
    }
}

bool infer_draw_ok(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot &&
           (strcmp(dot, ".jpg") == 0 || strcmp(dot, ".jpeg") == 0 || strcmp(dot, ".png") == 0);
}

int infer_draw(struct infer *in, const struct piped_decoded *r, const struct infer_item *item,
               const struct piped_frame *f)
{
    bool grey = item->format == PIPED_GRAY8;
    uint32_t stride = f->stride ? f->stride : f->width * (grey ? 1 : 3);
    char path[4096], error[256];
    struct canvas c;
    int rc;

    if (!grey && item->format != PIPED_RGB24 && item->format != PIPED_BGR24) {
        ctl_say("--draw needs a picture, or a video of rgb24, bgr24 or gray8");
        return CTL_FAILED;
    }
    if (!canvas_init(&c, f->input, f->width, f->height, stride, grey ? 1 : 3,
                     item->format == PIPED_BGR24)) {
        ctl_say("out of memory");
        return CTL_FAILED;
    }
    shw_draw(&c, r);
    path_of(in, path, sizeof(path));
    rc = strcmp(strrchr(path, '.'), ".png") == 0 ? ctl_png_write(&c, path, error, sizeof(error))
                                                 : ctl_jpeg_write(&c, path, error, sizeof(error));
    canvas_deinit(&c);
    if (rc < 0) {
        ctl_say("%s: %s", path, error);
        return CTL_FAILED;
    }
    in->drawn++;
    return CTL_DONE;
}
