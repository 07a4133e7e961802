/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl models: the files of a model, open, to be sent. */
#include "apps/pipectl/models/models.h"
#include "base/json_text.h"
#include "base/path_below.h"
#include "base/shown_text.h"
#include "base/whole_file.h"

struct search {
    struct ctl_model_files *files;
    int folder[2]; /* of the file; of its target if it is a link, or -1 */
};

void ctl_model_files_close(struct ctl_model_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        base_close_fd(&f->fd[i]);
    }
    f->count = 0;
    json_decref(base_take(f->names));
}

static int open_folder(const char *file)
{
    const char *slash = strrchr(file, '/');
    base_autofree char *folder = strndup(file, (size_t)base_max(slash - file, (ptrdiff_t)1));

    return folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int refuse(struct ctl_model_files *f, const char *name, int code, const char *why)
{
    char shown[SHOWN_SHORT_MAX];

    snprintf(f->why, sizeof(f->why), "%s: %s", shown_short(name, shown, sizeof(shown)), why);
    return -code;
}

/* Takes @fd. */
static int add(struct ctl_model_files *f, const char *name, int fd)
{
    if (f->count == CTL_MODEL_FILES_MAX) {
        snprintf(f->why, sizeof(f->why), "it has more than %u files", CTL_MODEL_FILES_MAX);
        close(fd);
        return -E2BIG;
    }
    if (json_array_append_new(f->names, json_string(name)) < 0) {
        close(fd);
        return refuse(f, name, EINVAL, "the name is not UTF-8");
    }
    f->fd[f->count++] = fd;
    return 0;
}

/* Return: 0; -errno; with @optional also 0 if there is no such file. */
static int add_beneath(struct search *s, const char *name, bool optional)
{
    int fd = path_open_below(s->folder[0], name);

    if (fd < 0 && errno == ENOENT && s->folder[1] >= 0) {
        fd = path_open_below(s->folder[1], name);
    }
    if (fd >= 0) {
        return add(s->files, name, fd);
    }
    if (optional && errno == ENOENT) {
        return 0;
    }
    return refuse(s->files, name, errno,
                  errno == EXDEV ? "is or leads through an absolute link, or leads out of the "
                                   "model's folder"
                                 : strerror(errno));
}

static int found(void *ctx, const char *name)
{
    struct search *s = ctx;
    char below[PATH_BELOW_MAX];
    int r = path_below(name, below);

    if (r == PATH_BELOW_E_LONG) {
        return refuse(s->files, name, ENAMETOOLONG, strerror(ENAMETOOLONG));
    }
    if (r != 0) {
        return refuse(s->files, name, EXDEV, "must be a path below the model's folder");
    }
    json_text_each(s->files->names, i, known) {
        if (strcmp(json_string_value(known), below) == 0) {
            return 0;
        }
    }
    return add_beneath(s, below, false);
}

/* Return: the sidecar's text as JSON; NULL: it is none, which the daemon says better. */
static json_t *read_sidecar(int fd)
{
    const struct whole_file f = {.folder = fd, .bytes_max = PATH_SIDECAR_BYTES_MAX};
    base_autofree char *text = NULL;
    json_error_t at;
    size_t bytes;

    return whole_file_read(&f, &text, &bytes) == 0 ? json_text_read(text, bytes, 0, &at) : NULL;
}

/* With the files that it names: those are below the model's folder, too. */
static int add_sidecar(struct search *s, const char *model)
{
    const char *dot = strrchr(model, '.');
    base_autofree char *name = NULL;
    int stem = dot && dot > model ? (int)(dot - model) : (int)strlen(model);
    size_t before = s->files->count;
    int r = asprintf(&name, "%.*s" PATH_SIDECAR_ENDING, stem, model) < 0
                ? -ENOMEM
                : add_beneath(s, name, true);

    if (r == 0 && s->files->count > before) {
        json_auto_t *sidecar = read_sidecar(s->files->fd[before]);
        const char *labels = json_string_value(json_object_get(sidecar, "labels_file"));
        const char *alphabet = json_string_value(json_text_at(sidecar, "output.alphabet_file"));

        r = labels ? found(s, labels) : 0;
        r = r == 0 && alphabet ? found(s, alphabet) : r;
    }
    return r;
}

/* Where the file is a link, the folder of its target; -1: there is none. */
static int target_folder(const char *path)
{
    base_autofree char *target = NULL;
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode)) {
        return -1;
    }
    target = realpath(path, NULL);
    return target ? open_folder(target) : -1;
}

static int open_all(struct search *s, const char *path)
{
    struct ctl_model_files *f = s->files;
    const char *name = strrchr(path, '/') + 1;
    int fd = open(path, PATH_OPEN_FLAGS), r;

    if (fd < 0 || s->folder[0] < 0) {
        r = -errno;
        snprintf(f->why, sizeof(f->why), "%s", strerror(-r));
        close(fd);
        return r;
    }
    r = add(f, name, fd);
    r = r < 0 ? r : add_sidecar(s, name);
    r = r < 0 ? r : ctl_onnx_files(f->fd[0], found, s);
    if (r < 0 && !f->why[0]) {
        snprintf(f->why, sizeof(f->why), "%s", strerror(-r));
    }
    return r;
}

bool ctl_model_files_open(const char *path, struct ctl_model_files *ret)
{
    struct search s = {.files = ret, .folder = {open_folder(path), target_folder(path)}};
    int r;

    *ret = (struct ctl_model_files){.names = json_array()};
    r = ret->names ? open_all(&s, path) : -ENOMEM;
    base_close_fd(&s.folder[0]);
    base_close_fd(&s.folder[1]);
    if (r < 0) {
        ctl_model_files_close(ret);
    }
    return r == 0;
}
