/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: reads examples from a folder and sends them; the daemon may not be able to read it. */
#include <dirent.h>
#include <sys/mman.h>

#include "apps/picture/picture.h"
#include "apps/pipectl/common/pipectl.h"
#include "base/whole_file.h"

#define BYTES_MAX ((size_t)1 << 30)
#define EXAMPLES_MAX 8192u

static int write_decoded(int fd, const struct picture *img, const uint8_t *pixels,
                         size_t *ret_bytes)
{
    char head[64];
    int n = 0, rc;

    if (img->kind != PICTURE_RAW) {
        n = snprintf(head, sizeof(head), "P%d\n%u %u\n255\n", img->channels == 3 ? 6 : 5,
                     img->width, img->height);
    }
    rc = atomic_file_write_all(fd, head, (size_t)n);
    *ret_bytes = (size_t)n + img->bytes;
    return rc < 0 ? rc : atomic_file_write_all(fd, (const char *)pixels, img->bytes);
}

/* Appends a file's bytes. @ret_bytes: how many; 0: cannot be read, as was printed. Return: 0, or
 * -errno of the memfd. */
static int add_bytes(int fd, const char *path, size_t *ret_bytes)
{
    struct picture img = PICTURE_NULL;
    base_autofree uint8_t *pixels = NULL;
    char why[PICTURE_ERROR_MAX] = "out of memory";
    int rc = picture_open(path, why, &img);

    *ret_bytes = 0;
    pixels = rc < 0 ? NULL : malloc(img.bytes + 1);
    if (rc < 0 || !pixels || picture_decode(&img, pixels, why) < 0) {
        ctl_say("skipping %s: %s", path, why);
        rc = 0;
    } else {
        rc = write_decoded(fd, &img, pixels, ret_bytes);
    }
    picture_close(&img);
    return rc;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.' && e->d_type != DT_DIR;
}

/* A JPEG is sent as a pixmap under its own name: all but .f32 are pixmaps. */
static int add_files(const char *folder, struct dirent **names, int found, int fd, json_t *list)
{
    size_t all = 0, bytes;
    int rc = 0;

    for (int i = 0; i < found && rc == 0; i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s%s%s", folder, ctl_slash(folder), names[i]->d_name);
        rc = add_bytes(fd, path, &bytes);
        all += bytes;
        if (rc < 0) {
            ctl_say("cannot copy the examples: %s", strerror(-rc));
        } else if (all > BYTES_MAX || json_array_size(list) >= EXAMPLES_MAX) {
            ctl_say("%s: more than %u examples or 1 GiB; use fewer or smaller pictures", folder,
                    EXAMPLES_MAX);
            rc = -E2BIG;
        } else if (bytes > 0 &&
                   json_array_append_new(list, json_pack("{s:s, s:I}", "name", names[i]->d_name,
                                                         "bytes", (json_int_t)bytes)) < 0) {
            ctl_say("%s: the name is not UTF-8", path);
            rc = -EINVAL;
        }
    }
    return rc;
}

static int take_examples(const char *folder, json_t *parameters, int *ret_fd)
{
    base_autoclose int fd = memfd_create("examples", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct dirent **names = NULL;
    json_t *list = json_array();
    int found = scandir(folder, &names, visible, alphasort), rc = 0;

    if (found < 0 || fd < 0) {
        ctl_say("%s: %s", found < 0 ? folder : "memfd", strerror(errno));
        rc = -EIO;
    }
    rc = rc < 0 ? rc : add_files(folder, names, found, fd, list);
    for (int i = 0; i < found; i++) {
        free(names[i]);
    }
    free(names);
    if (rc == 0 && json_array_size(list) == 0) {
        ctl_say("%s contains no picture (JPEG, PNG, PPM, PGM) and no tensor (.f32)", folder);
        rc = -ENOENT;
    }
    if (rc == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        ctl_say("cannot seal the examples: %m");
        rc = -EIO;
    }
    json_object_set_new(parameters, "examples", list);
    if (rc < 0) {
        return CTL_FAILED;
    }
    *ret_fd = base_take_fd(&fd);
    return CTL_DONE;
}

int ctl_call_examples(const struct ctl *ctl, const char *method, const char *folder,
                      json_t *parameters, json_t **ret)
{
    base_autoclose int fd = -1;
    int rc = folder ? take_examples(folder, parameters, &fd) : 0;

    return rc ? rc : ctl_call_fds(ctl, method, json_incref(parameters), &fd, fd >= 0 ? 1 : 0, ret);
}
