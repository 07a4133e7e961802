/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: what a decoder found, as lines and as a drawing. */
#include "apps/show/decoded.h"
#include "apps/pipectl/infer/infer.h"
#include "apps/show/canvas.h"

/* Finds out how to decode. If nothing says how, that is told once, unless raw values are wanted. */
void infer_find_decoder(struct infer *in, const struct piped_stream *s)
{
    int rc = piped_decoder_follow(&in->decoder, s);

    if (rc < 0) {
        snprintf(in->not_decoded, sizeof(in->not_decoded), "%s", piped_last_error());
    }
    if (rc < 0 && !in->said && !in->o.draw && !in->o.expect && !(rc == -ENODATA && in->o.raw)) {
        in->said = true;
        ctl_say("the outputs are not decoded: %s", in->not_decoded);
    }
}

/* --expect compares the best class. */
static void need_classes(struct infer *in, const struct piped_stream *s)
{
    json_auto_t *j = json_loads(piped_stream_description(s), 0, NULL);
    const char *kind = ctl_text(j, "output.decode");

    if (strcmp(kind, "classes") != 0) {
        snprintf(in->not_decoded, sizeof(in->not_decoded),
                 "the model's outputs are %s, and not the scores of classes", kind);
    }
}

void infer_begin_decoding(struct infer *in, const struct piped_stream *s)
{
    infer_find_decoder(in, s);
    if (in->decoder && in->o.expect) {
        need_classes(in, s);
    }
}

/* A number of JSON times @scale, with one digit; "-": it was NaN or infinite. */
static void print_number(const json_t *v, double scale)
{
    if (json_is_number(v)) {
        printf("%.1f", scale * json_number_value(v));
    } else {
        printf("-");
    }
}

static void print_name(const json_t *o)
{
    const char *label = json_string_value(json_object_get(o, "label"));

    if (label) {
        shown_printf("  %s", label);
    } else if (json_is_integer(json_object_get(o, "class"))) {
        printf("  class %.0f", ctl_real(o, "class"));
    } else {
        printf("  -");
    }
    printf("  %.1f %%", 100 * ctl_real(o, "score"));
}

static void print_object(const json_t *report, const json_t *o)
{
    double whole = ctl_real(report, "width") * ctl_real(report, "height");
    const json_t *points = json_object_get(o, "points");

    print_name(o);
    if (json_object_get(o, "x")) {
        printf("  x %.1f y %.1f w %.1f h %.1f", ctl_real(o, "x"), ctl_real(o, "y"),
               ctl_real(o, "width"), ctl_real(o, "height"));
    }
    if (json_object_get(report, "mask") && whole > 0) {
        printf("  %.1f %% of the picture", 100 * ctl_real(o, "area") / whole);
    }
    if (points) {
        printf("  points");
    }
    json_text_each(points, i, p) {
        printf(" ");
        print_number(json_array_get(p, 0), 1);
        printf(",");
        print_number(json_array_get(p, 1), 1);
    }
    printf("\n");
}

void infer_print_decoded(const json_t *report)
{
    const char *text = json_string_value(json_object_get(report, "text"));
    const json_t *objects = json_object_get(report, "objects");

    if (text) {
        printf("  ");
        print_number(json_object_get(report, "text_score"), 100);
        shown_printf(" %%  %s\n", text);
    }
    json_text_each(objects, i, o) {
        print_object(report, o);
    }
    if (!text && json_array_size(objects) == 0) {
        printf("  nothing found\n");
    }
}

/* ---- --draw: on the picture that was sent ---- */

/* "out.jpg" for the first frame, then "out-2.jpg" and so on. */
static void path_of(const struct infer *in, char *ret, size_t bytes)
{
    const char *dot = strrchr(in->o.draw, '.'); /* infer_draw_ok() saw it */

    if (in->drawn == 0) {
        snprintf(ret, bytes, "%s", in->o.draw);
    } else {
        snprintf(ret, bytes, "%.*s-%zu%s", (int)(dot - in->o.draw), in->o.draw, in->drawn + 1, dot);
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
    char path[4096], error[PICTURE_ERROR_MAX];
    struct canvas c;
    int rc;

    if (!grey && item->format != PIPED_RGB24 && item->format != PIPED_BGR24) {
        return ctl_fail("--draw needs a picture, or a video of rgb24, bgr24 or gray8");
    }
    if (!canvas_init(&c, f->input, f->width, f->height, stride, grey ? 1 : 3,
                     item->format == PIPED_BGR24)) {
        return ctl_fail("out of memory");
    }
    shw_draw(&c, r);
    path_of(in, path, sizeof(path));
    rc = strcmp(strrchr(path, '.'), ".png") == 0 ? picture_png_write(&c, path, error)
                                                 : picture_jpeg_write(&c, path, error);
    canvas_deinit(&c);
    if (rc < 0) {
        return ctl_fail("%s: %s", path, error);
    }
    in->drawn++;
    return CTL_DONE;
}
