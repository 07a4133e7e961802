/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: which files, which frames in them, and their expected classes. */
#include <dirent.h>
#include <sys/mman.h>

#include "apps/pipectl/infer/infer.h"
#include "base/whole_file.h"

#define FILES_MAX 10000000u
#define KEPT_MOST ((size_t)256 << 20) /* of what can be read once only */

int infer_add_file(struct infer *in, const char *path)
{
    if (in->file_count == FILES_MAX ||
        !base_room(&in->files, sizeof(*in->files), in->file_count, &in->file_room)) {
        return ctl_fail("out of memory");
    }
    in->files[in->file_count] = (struct infer_file){.name = strdup(path), .copy = -1};
    if (!in->files[in->file_count].name) {
        return ctl_fail("out of memory");
    }
    in->file_count++;
    return CTL_DONE;
}

const char *infer_path(const struct infer *in, size_t i)
{
    return in->files[i].copy >= 0 ? in->files[i].path : in->files[i].name;
}

/* Copies all that comes from @fd into memory. Return: a descriptor; -errno. -EFBIG: above
 * KEPT_MOST. */
static int copy_all(int fd)
{
    base_autoclose int copy = memfd_create("pipectl-input", MFD_CLOEXEC);
    char bytes[65536];
    size_t all = 0;
    ssize_t n;
    int taken = copy < 0 ? -errno : 0;

    while (taken == 0 && (n = base_read_all(fd, bytes, sizeof(bytes))) != 0) {
        all += n > 0 ? (size_t)n : 0;
        taken = n < 0             ? (int)n
                : all > KEPT_MOST ? -EFBIG
                                  : atomic_file_write_all(copy, bytes, (size_t)n);
    }
    return taken == 0 ? base_take_fd(&copy) : taken;
}

/* Standard input, a pipe, a device: what is read once is kept. */
static int add_once(struct infer *in, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    base_autoclose int fd = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int rc = infer_add_file(in, path), copy;

    if (rc) {
        return rc;
    }
    copy = !standard && fd < 0 ? -errno : copy_all(standard ? STDIN_FILENO : fd);
    if (copy < 0) {
        return ctl_fail("%s: %s", path,
                        copy == -EFBIG ? "more than 256 MiB came from it; give a file"
                                       : strerror(-copy));
    }
    in->files[in->file_count - 1].copy = copy;
    snprintf(in->files[in->file_count - 1].path, sizeof(in->files[0].path), "/proc/self/fd/%d",
             copy);
    return CTL_DONE;
}

static int is_input(const struct dirent *e)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".ppm",
                                       ".pgm", ".pnm",  ".f32", ".f16",  ".npy"};
    const char *dot = strrchr(e->d_name, '.');

    for (size_t i = 0; dot && i < base_array_count(ends); i++) {
        if (strcasecmp(dot, ends[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int add_directory(struct infer *in, const char *path)
{
    struct dirent **entries;
    int rc = CTL_DONE;
    int n = scandir(path, &entries, is_input, versionsort);

    if (n < 0) {
        return ctl_fail("%s: %s", path, strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        base_autofree char *whole = NULL;

        if (rc == CTL_DONE) {
            rc = asprintf(&whole, "%s%s%s", path, ctl_slash(path), entries[i]->d_name) < 0
                     ? ctl_fail("out of memory")
                     : infer_add_file(in, whole);
        }
        free(entries[i]);
    }
    free(entries);
    if (rc == CTL_DONE && n == 0) {
        return ctl_fail("%s contains no .jpg, .png, .ppm, .pgm, .npy, .f32 or .f16 file", path);
    }
    return rc;
}

int infer_add_path(struct infer *in, const char *path)
{
    struct stat st;
    bool there = stat(path, &st) == 0;

    if (there && S_ISDIR(st.st_mode)) {
        return add_directory(in, path);
    }
    if (strcmp(path, "-") == 0 || (there && !S_ISREG(st.st_mode))) {
        return add_once(in, path);
    }
    return infer_add_file(in, path);
}

int infer_add_list(struct infer *in, const char *path)
{
    ctl_autoclose_file FILE *f = fopen(path, "re");
    base_autofree char *line = NULL;
    size_t size = 0;
    ssize_t n;
    int rc = CTL_DONE;

    if (!f) {
        return ctl_fail("%s: %s", path, strerror(errno));
    }
    while (rc == CTL_DONE && (n = getline(&line, &size, f)) >= 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) {
            line[--n] = 0;
        }
        if (n > 0) {
            rc = infer_add_path(in, line);
        }
    }
    return rc;
}

int infer_read_expected(struct infer *in)
{
    ctl_autoclose_file FILE *f = fopen(in->o.expect, "re");
    base_autofree char *line = NULL;
    size_t size = 0, number = 0;

    if (!f) {
        return ctl_fail("%s: %s", in->o.expect, strerror(errno));
    }
    in->expected = calloc(in->item_count ? in->item_count : 1, sizeof(long));
    if (!in->expected) {
        return ctl_fail("out of memory");
    }
    while (getline(&line, &size, f) >= 0) {
        char *end;
        long v;

        errno = 0;
        v = strtol(line, &end, 10);
        number++;
        if (line[strspn(line, " \t\r\n")] == 0) {
            continue;
        }
        if (end == line || end[strspn(end, " \t\r\n")] != 0 || v < 0 || errno) {
            return ctl_fail("%s:%zu: expected one class index", in->o.expect, number);
        }
        if (in->expected_count < in->item_count) {
            in->expected[in->expected_count] = v;
        }
        in->expected_count++;
    }
    if (in->expected_count != in->item_count) {
        return ctl_fail("%s has %zu classes, the files have %zu frames", in->o.expect,
                        in->expected_count, in->item_count);
    }
    return CTL_DONE;
}

static int add_item(struct infer *in, size_t file, size_t frame, uint32_t format, const char *error)
{
    struct infer_item *item;

    if (!base_room(&in->items, sizeof(*in->items), in->item_count, &in->item_room)) {
        return ctl_fail("out of memory");
    }
    item = &in->items[in->item_count++];
    *item = (struct infer_item){.file = file, .frame = frame, .format = format, .best = -1};
    if (error) {
        item->error = strdup(error);
        item->done = true;
    }
    return CTL_DONE;
}

bool infer_has_f16(const struct infer *in)
{
    for (size_t i = 0; i < in->file_count; i++) {
        base_cleanup(picture_close) struct picture img = PICTURE_NULL;
        const char *dot = strrchr(in->files[i].name, '.');
        bool array = (dot && strcmp(dot, ".npy") == 0) || in->files[i].copy >= 0;
        char unused[PICTURE_ERROR_MAX];

        if ((dot && strcmp(dot, ".f16") == 0) ||
            (array && picture_open(infer_path(in, i), unused, &img) == 0 && img.f16)) {
            return true;
        }
    }
    return false;
}

/* An array of NumPy has the input's shape, but for ones and a number of frames in front of it, or
 * one dimension. */
static bool shape_fits(const struct infer *in, const struct picture *img)
{
    size_t first = 0;

    while (first < in->rank && in->dim[first] == 1) {
        first++;
    }
    if (img->rank <= 1 || in->rank == 0) {
        return true;
    }
    for (size_t k = in->rank; k > first; k--) {
        size_t behind = in->rank - k + 1; /* from the last one on */

        if (behind > img->rank || img->dim[img->rank - behind] != in->dim[k - 1]) {
            return false;
        }
    }
    return true;
}

/* Adds the frames of a raw file. */
static int add_raw(struct infer *in, size_t file, const struct picture *img)
{
    size_t frame_bytes = in->frame_bytes[img->f16];
    char error[640];
    int rc = CTL_DONE;

    if (in->not_floats[0]) {
        return add_item(in, file, 0, PIPED_TENSOR, in->not_floats);
    }
    if (frame_bytes == 0 || img->bytes == 0 || img->bytes % frame_bytes) {
        snprintf(error, sizeof(error),
                 "its %zu bytes are not a multiple of a frame, which has %zu: %s", img->bytes,
                 frame_bytes, in->frame_text[img->f16]);
        return add_item(in, file, 0, PIPED_TENSOR, error);
    }
    if (!shape_fits(in, img)) {
        char shape[160] = "";

        for (size_t i = 0; i < img->rank; i++) {
            base_append(shape, sizeof(shape), "%s%zu", i ? "," : "", img->dim[i]);
        }
        snprintf(error, sizeof(error),
                 "the array has the shape [%s], and the model's input is %s; transpose it, or save "
                 "a.ravel() if its elements are in the right order",
                 shape, in->frame_text[img->f16]);
        return add_item(in, file, 0, PIPED_TENSOR, error);
    }
    in->most_bytes[img->f16 ? INFER_F16 : 0] = frame_bytes;
    for (size_t k = 0; rc == CTL_DONE && k < img->bytes / frame_bytes; k++) {
        rc = add_item(in, file, k, PIPED_TENSOR, NULL);
        if (rc == CTL_DONE) {
            in->items[in->item_count - 1].f16 = img->f16;
        }
    }
    return rc;
}

static int add_picture(struct infer *in, size_t file, size_t frame, const struct picture *img)
{
    uint32_t format = img->channels == 1 ? PIPED_GRAY8 : PIPED_RGB24;
    size_t k = format == PIPED_GRAY8 ? 2 : 1;

    if (img->bytes > in->most_bytes[k]) {
        in->most_bytes[k] = img->bytes;
        in->most_width[k] = img->width;
        in->most_height[k] = img->height;
    }
    return add_item(in, file, frame, format, NULL);
}

/* Looks at the kind, size and frames of each file. A file that cannot be read becomes an item with
 * an error; the others go on. */
int infer_make_items(struct infer *in)
{
    int rc = CTL_DONE;

    for (size_t i = 0; rc == CTL_DONE && i < in->file_count; i++) {
        base_cleanup(picture_close) struct picture img = PICTURE_NULL;
        char error[PICTURE_ERROR_MAX];
        int more = 1;

        if (picture_open(infer_path(in, i), error, &img) < 0) {
            rc = add_item(in, i, 0, PIPED_TENSOR, error);
            continue;
        }
        if (img.kind == PICTURE_RAW) {
            rc = add_raw(in, i, &img);
            continue;
        }
        for (size_t frame = 0; rc == CTL_DONE && more > 0; frame++) {
            rc = add_picture(in, i, frame, &img);
            more = picture_next(&img, error);
            if (rc == CTL_DONE && more < 0) {
                rc = add_item(in, i, frame + 1, PIPED_TENSOR, error);
            }
        }
    }
    return rc;
}
