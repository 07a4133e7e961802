/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on accuracy: of the choices that trade time for rounding, the fastest whose classes agree
 * with those of the exact choice on a calibration set. The set is a folder of raw float32 files,
 * one frame each.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "daemon/choose_private.h"
#include "kernels/agree.h"

#define FRAMES_MAX 1024u

struct set {
    void **frames; /* owned, as are its parts */
    size_t count;
};

static void set_deinit(struct set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->frames[i]);
    }
    free(s->frames);
}

static int read_frame(struct dmn_choose *c, const struct mdl_model *m, const char *path, void **ret)
{
    size_t bytes = m->inputs[0].bytes;
    base_autofree void *frame = NULL;
    struct stat st;
    FILE *f;
    bool whole;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes) {
        snprintf(c->note, sizeof(c->note), "%.150s is no frame of this model (%zu bytes)", path,
                 bytes);
        return -EINVAL;
    }
    frame = aligned_alloc(64, base_align_up(bytes, 64));
    f = fopen(path, "re");
    whole = frame && f && fread(frame, 1, bytes, f) == bytes;
    if (f) {
        fclose(f);
    }
    if (!whole) {
        snprintf(c->note, sizeof(c->note), "%.150s could not be read", path);
        return -EIO;
    }
    *ret = base_take(frame);
    return 0;
}

static int is_frame(const struct dirent *e)
{
    const char *end = strrchr(e->d_name, '.');

    return end && strcmp(end, ".f32") == 0;
}

static int read_set(struct dmn_choose *c, const struct mdl_model *m, struct set *ret)
{
    struct dirent **names = NULL;
    int found = scandir(c->calibrate, &names, is_frame, alphasort), r = 0;

    if (found <= 0 || m->input_count != 1) {
        snprintf(c->note, sizeof(c->note), "%.150s: %s", c->calibrate,
                 found < 0    ? strerror(errno)
                 : found == 0 ? "there are no .f32 files"
                              : "the model has more than one input");
        r = -EINVAL;
    }
    ret->frames = r == 0 ? calloc((size_t)found, sizeof(*ret->frames)) : NULL;
    for (int i = 0; i < found; i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/%s", c->calibrate, names[i]->d_name);
        if (r == 0 && ret->frames && ret->count < FRAMES_MAX) {
            r = read_frame(c, m, path, &ret->frames[ret->count]);
            ret->count += r == 0;
        }
        free(names[i]);
    }
    free(names);
    return r == 0 && !ret->frames ? -ENOMEM : r;
}

int dmn_choose_agree(struct dmn_choose *c, const struct mdl_model *m, const struct krn_times *t,
                     struct krn_chosen *ret)
{
    struct krn_choose_options o = c->options;
    struct krn_chosen exact = KRN_CHOSEN_NULL, front[DMN_CHOOSE_FRONT_MAX];
    struct set set = {0};
    size_t count = 0;
    bool found = false;
    int r = read_set(c, m, &set);

    o.exact = true;
    r = r < 0 ? r : krn_choose(t, &o, &exact);
    o.exact = false;
    o.front_inexact = true;
    r = r < 0 ? r : krn_choose_front(t, &o, DMN_CHOOSE_FRONT_MAX, front, &count);
    for (size_t i = 0; i < count; i++) {
        double agreement = 0;

        if (r == 0 && !found) {
            r = krn_agreement(m, &exact.choice, &front[i].choice, (const void *const *)set.frames,
                              set.count, &agreement);
        }
        if (r == 0 && !found && agreement >= c->agreement_min) {
            found = true;
            c->agreement = agreement;
            *ret = front[i];
        } else {
            krn_chosen_deinit(&front[i]);
        }
    }
    if (r == 0 && !found) { /* not even those with the fewest inexact rows */
        c->agreement = 1;
        *ret = exact;
    } else {
        krn_chosen_deinit(&exact);
    }
    set_deinit(&set);
    return r;
}
