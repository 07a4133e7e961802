/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "kernels/calibrate.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)
#define SIDE_MAX 16384u

/* The whole file. Return: 0, -errno, -EINVAL for what is no plain file, -E2BIG. */
static int read_file(int dir, const char *name, uint8_t **ret, size_t *ret_bytes)
{
    base_autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    base_autofree uint8_t *data = NULL;
    struct stat st;
    size_t got = 0;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return -EINVAL;
    }
    if ((uint64_t)st.st_size > FILE_BYTES_MAX) {
        return -E2BIG;
    }
    data = malloc((size_t)st.st_size + 1);
    if (!data) {
        return -ENOMEM;
    }
    while (got < (size_t)st.st_size) {
        ssize_t n = read(fd, data + got, (size_t)st.st_size - got);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        got += (size_t)n;
    }
    *ret = base_take(data);
    *ret_bytes = got;
    return 0;
}

/* A number of a portable pixmap's header; comments run from # to the line's end. */
static bool read_number(const uint8_t *data, size_t bytes, size_t *at, uint32_t *ret)
{
    uint32_t v = 0;
    size_t first;

    while (*at < bytes && (data[*at] == '#' || data[*at] == ' ' || data[*at] == '\t' ||
                           data[*at] == '\r' || data[*at] == '\n')) {
        if (data[*at] == '#') {
            while (*at < bytes && data[*at] != '\n') {
                ++*at;
            }
        } else {
            ++*at;
        }
    }
    first = *at;
    while (*at < bytes && data[*at] >= '0' && data[*at] <= '9' && v <= SIDE_MAX) {
        v = v * 10 + (uint32_t)(data[(*at)++] - '0');
    }
    *ret = v;
    return *at > first && v > 0 && v <= SIDE_MAX;
}

static bool read_ppm(const uint8_t *data, size_t bytes, struct krn_image *ret)
{
    uint32_t width, height, most;
    size_t at = 2;

    if (bytes < 2 || memcmp(data, "P6", 2) != 0 || !read_number(data, bytes, &at, &width) ||
        !read_number(data, bytes, &at, &height) || !read_number(data, bytes, &at, &most) ||
        most != 255 || at >= bytes) {
        return false;
    }
    at++; /* one white space */
    *ret = (struct krn_image){.format = KRN_PIX_RGB24,
                              .width = width,
                              .height = height,
                              .stride = width * 3,
                              .data = data + at};
    return krn_image_bytes(ret) && krn_image_bytes(ret) <= bytes - at;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n > k && strcmp(s + n - k, end) == 0;
}

static int is_example(const struct dirent *e)
{
    return ends_with(e->d_name, ".ppm") || ends_with(e->d_name, ".f32");
}

static int add_file(struct krn_calibrate *c, int dir, const char *name, char *error)
{
    base_autofree uint8_t *data = NULL;
    struct krn_image img;
    size_t bytes = 0;
    int r = read_file(dir, name, &data, &bytes);

    if (r < 0) {
        snprintf(error, MDL_ERROR_MAX, "%s", strerror(-r));
        return r;
    }
    if (ends_with(name, ".f32")) {
        return krn_calibrate_tensor(c, data, bytes, error);
    }
    if (!read_ppm(data, bytes, &img)) {
        snprintf(error, MDL_ERROR_MAX, "not a whole pixmap (P6, 8 bits)");
        return -EINVAL;
    }
    return krn_calibrate_image(c, &img, error);
}

int krn_calibrate_folder(struct krn_calibrate *c, const char *path, size_t *ret_count,
                         char ret_note[MDL_ERROR_MAX], char ret_error[MDL_ERROR_MAX])
{
    base_autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **names = NULL;
    char why[MDL_ERROR_MAX];
    size_t counted = 0;
    int found = dir < 0 ? -1 : scandirat(dir, ".", &names, is_example, alphasort);

    ret_note[0] = '\0';
    if (found < 0) {
        int r = -errno;

        snprintf(ret_error, MDL_ERROR_MAX, "%.300s: %s", path, strerror(-r));
        return r;
    }
    for (int i = 0; i < found; i++) {
        if (add_file(c, dir, names[i]->d_name, why) == 0) {
            counted++;
        } else if (!ret_note[0]) {
            snprintf(ret_note, MDL_ERROR_MAX, "%.200s: %.300s", names[i]->d_name, why);
        }
        free(names[i]);
    }
    free(names);
    if (counted == 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "%.200s: no *.ppm or *.f32 that fits the model%s%.250s",
                 path, ret_note[0] ? ": " : "", ret_note);
        return -ENOENT;
    }
    *ret_count = counted;
    return 0;
}
