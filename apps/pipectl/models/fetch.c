/* SPDX-License-Identifier: Apache-2.0 */
/* A model is its file, the labels if they are a file, and the sidecar. Each is written beside its
 * place under a name of its own; only when all are right they get their names. */
#include "apps/pipectl/models/models.h"

#include <sys/random.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/path_below.h"
#include "base/whole_file.h"

#define FILES_MAX 3u

struct item {
    char name[96], draft[112]; /* draft "": there is none */
    bool placed;
};
struct fetch {
    const struct ctl_options *asked;
    const json_t *row;
    int folder;
    struct item items[FILES_MAX]; /* in the order in which they get their names: the model last */
    size_t count;
};

static int list(const struct ctl *ctl, const json_t *rows)
{
    struct cli_table t = {.align = "lrlw"};

    if (ctl->json) {
        ctl_print_json(rows);
        return CTL_DONE;
    }
    cli_table_add(&t, "name\tMB\tlicence\twhat");
    json_text_each(rows, i, row) {
        cli_table_add(&t, "%s\t%.2f\t%s\t%s", ctl_text(row, "name"), ctl_real(row, "bytes") / 1e6,
                      ctl_line(row, "licence").text, ctl_line(row, "about").text);
    }
    cli_table_print(&t);
    return CTL_DONE;
}

static int failed(const struct fetch *f, const struct item *i)
{
    return ctl_fail("%s/%s: %s", f->asked->folder, i->name, strerror(errno));
}

static void name_of(const struct fetch *f, const char *ending, struct item *ret)
{
    snprintf(ret->name, sizeof(ret->name), "%s%s", ctl_text(f->row, "name"), ending);
}

static struct item *next_item(struct fetch *f, const char *ending)
{
    struct item *i = &f->items[f->count++];

    name_of(f, ending, i);
    return i;
}

/* Opens a new file beside the place of the next item. Return: its descriptor; -1: see stderr. */
static int begin_item(struct fetch *f, const char *ending)
{
    struct item *i = next_item(f, ending);
    struct stat st;
    uint64_t number;
    int fd;

    if (!f->asked->force && fstatat(f->folder, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        return ctl_refuse(-1, "%s/%s: is there already; --force replaces it", f->asked->folder,
                          i->name);
    }
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        number = (uint64_t)getpid();
    }
    snprintf(i->draft, sizeof(i->draft), ".%s%s.%08llx", ctl_text(f->row, "name"), ending,
             (unsigned long long)(number & 0xffffffff));
    fd = openat(f->folder, i->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        i->draft[0] = '\0';
        failed(f, i);
    }
    return fd;
}

static int end_item(const struct fetch *f, int fd, int rc)
{
    if (!rc && fsync(fd) < 0) {
        rc = failed(f, &f->items[f->count - 1]);
    }
    close(fd);
    return rc;
}

static int download_item(struct fetch *f, const char *ending, const json_t *from)
{
    struct ctl_source source = ctl_source(from);
    int fd = begin_item(f, ending);

    return fd < 0 ? CTL_FAILED
                  : end_item(f, fd, ctl_download(&source, f->items[f->count - 1].name, fd));
}

static int write_sidecar(struct fetch *f, const json_t *labels)
{
    json_auto_t *sidecar = json_deep_copy(json_object_get(f->row, "sidecar"));
    base_autofree char *text = NULL;
    int fd, rc = CTL_DONE;

    if (labels) {
        json_object_set_new(sidecar, "labels_file",
                            json_sprintf("%s.labels.txt", ctl_text(f->row, "name")));
    }
    text = json_dumps(sidecar, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    fd = text ? begin_item(f, PATH_SIDECAR_ENDING) : -1;
    if (fd < 0) {
        return CTL_FAILED;
    }
    errno = -atomic_file_write_all(fd, text, strlen(text));
    errno = errno ? errno : -atomic_file_write_all(fd, "\n", 1);
    if (errno) {
        rc = failed(f, &f->items[f->count - 1]);
    }
    return end_item(f, fd, rc);
}

/* Gives an item its name. Where the file system cannot refuse a name that is there, what looks for
 * it is a question before. */
static int place(const struct fetch *f, struct item *i)
{
    unsigned flags = f->asked->force ? 0 : RENAME_NOREPLACE;
    struct stat st;
    int r = renameat2(f->folder, i->draft, f->folder, i->name, flags);

    if (r < 0 && errno == EINVAL && flags) {
        errno = EEXIST;
        r = fstatat(f->folder, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0
                ? -1
                : renameat(f->folder, i->draft, f->folder, i->name);
    }
    if (r < 0) {
        return failed(f, i);
    }
    i->draft[0] = '\0';
    i->placed = true;
    return CTL_DONE;
}

/* What is not complete goes, with what has got its name, unless that replaced something. */
static void clean_up(struct fetch *f)
{
    for (size_t k = 0; k < f->count; k++) {
        struct item *i = &f->items[k];

        if (i->draft[0]) {
            (void)unlinkat(f->folder, i->draft, 0);
        }
        if (i->placed && !f->asked->force) {
            (void)unlinkat(f->folder, i->name, 0);
        }
    }
}

static void print(const struct ctl *ctl, const struct fetch *f)
{
    const char *name = ctl_text(f->row, "name");
    json_auto_t *files = json_array();

    for (size_t k = 0; k < f->count; k++) {
        base_autofree char *path = NULL;

        if (asprintf(&path, "%s%s%s", f->asked->folder, ctl_slash(f->asked->folder),
                     f->items[k].name) >= 0) {
            json_array_append_new(files, json_text_path(path));
        }
    }
    if (ctl->json) {
        ctl_print_new(json_pack("{s:s, s:O, s:O}", "name", name, "files", files, "bytes",
                                json_object_get(f->row, "bytes")));
        return;
    }
    for (size_t k = 0; k < f->count; k++) {
        shown_printf("%s\n", json_string_value(json_array_get(files, k)));
    }
    shown_printf("%s (%s) is as the catalogue says: SHA-256 %.16s...\n", name,
                 ctl_line(f->row, "licence").text, ctl_text(f->row, "sha256"));
    shown_printf("serve it: sudo pipectl models load %s %s --save\n", name,
                 json_string_value(json_array_get(files, f->count - 1)));
}

/* Return: the file that the catalogue describes is there, and may stay. */
static bool is_here(const struct fetch *f, const char *ending, const json_t *from)
{
    struct ctl_source source = ctl_source(from);
    struct item i;

    name_of(f, ending, &i);
    return !f->asked->force && ctl_is_source(&source, f->folder, i.name);
}

/* Return: a sidecar is there. It may have been edited since it was fetched. */
static bool has_sidecar(const struct fetch *f)
{
    struct item i;
    struct stat st;

    name_of(f, PATH_SIDECAR_ENDING, &i);
    return fstatat(f->folder, i.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* What is there already and right stays as it is. A sidecar without its model is somebody's own. */
static int get_items(struct fetch *f)
{
    const json_t *labels = json_object_get(f->row, "labels");
    bool model = is_here(f, ".onnx", f->row);
    int rc = CTL_DONE;

    if (labels && is_here(f, ".labels.txt", labels)) {
        next_item(f, ".labels.txt");
    } else if (labels) {
        rc = download_item(f, ".labels.txt", labels);
    }
    if (!rc && json_object_get(f->row, "sidecar")) {
        if (model && has_sidecar(f)) {
            next_item(f, PATH_SIDECAR_ENDING);
        } else {
            rc = write_sidecar(f, labels);
        }
    }
    if (rc || !model) {
        return rc ? rc : download_item(f, ".onnx", f->row);
    }
    next_item(f, ".onnx");
    return CTL_DONE;
}

static int fetch(const struct ctl *ctl, struct fetch *f)
{
    int rc;

    ctl_download_signals();
    rc = get_items(f);
    for (size_t k = 0; k < f->count && !rc; k++) {
        if (f->items[k].draft[0]) {
            rc = ctl_download_ended() ? CTL_FAILED : place(f, &f->items[k]);
        }
    }
    if (rc) {
        clean_up(f);
    } else {
        print(ctl, f);
    }
    return rc;
}

int ctl_models_fetch(const struct ctl *ctl, const struct ctl_options *o, const char *name)
{
    json_auto_t *rows = ctl_catalogue(o->catalogue);
    base_autoclose int folder = -1;
    struct fetch f = {.asked = o};

    if (rows && !name) {
        return list(ctl, rows);
    }
    f.row = rows ? ctl_catalogue_find(rows, name) : NULL;
    if (!f.row) {
        return CTL_FAILED;
    }
    f.folder = folder = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return ctl_fail("%s: %s", o->folder, strerror(errno));
    }
    return fetch(ctl, &f);
}
