/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/link_report.h"

#include "base/atomic_file.h"
#include "base/base.h"
#include "ipc/boards/board_files.h"

/* Runs on while the machine sleeps, and begins again with it, as the file does. */
static double boot_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / (double)BASE_NS_PER_S;
}

static json_t *link_json(const struct brd_link *l)
{
    json_t *v =
        json_pack("{s:s, s:b, s:f, s:I, s:I}", "name", l->name, "up", l->up, "for_s", l->for_s,
                  "losses", (json_int_t)l->losses, "frames", (json_int_t)l->frames);

    if (v && l->measured) {
        json_object_set_new(v, "message_us", json_real(l->message_us));
        json_object_set_new(v, "kilobyte_us", json_real(l->kilobyte_us));
    }
    return v;
}

int brd_report_write(const char *folder, const struct brd_report *report)
{
    base_autoclose int fd = -1;
    json_t *links;

    if (!folder) {
        return 0;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    links = json_array();
    for (size_t i = 0; i < report->count; i++) {
        json_array_append_new(links, link_json(&report->link[i]));
    }
    return brd_file_write(fd, BRD_REPORT_FILE, 0644,
                          json_pack("{s:f, s:I, s:o}", "written_s", boot_s(), "refused",
                                    (json_int_t)report->refused, "links", links));
}

static bool read_link(json_t *v, struct brd_link *ret)
{
    const char *name = json_string_value(json_object_get(v, "name"));
    json_t *message = json_object_get(v, "message_us");

    if (!name || strlen(name) >= sizeof(ret->name)) {
        return false;
    }
    *ret = (struct brd_link){
        .up = json_is_true(json_object_get(v, "up")),
        .for_s = json_number_value(json_object_get(v, "for_s")),
        .losses = (uint64_t)json_integer_value(json_object_get(v, "losses")),
        .frames = (uint64_t)json_integer_value(json_object_get(v, "frames")),
        .measured = json_is_number(message),
        .message_us = json_number_value(message),
        .kilobyte_us = json_number_value(json_object_get(v, "kilobyte_us")),
    };
    strcpy(ret->name, name);
    return true;
}

int brd_report_read(const char *folder, struct brd_report *ret)
{
    base_autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_t *root, *links, *v;
    size_t i;
    int rc = fd < 0 ? -errno : brd_file_read(fd, BRD_REPORT_FILE, false, &root);

    if (rc) {
        return rc;
    }
    links = json_object_get(root, "links");
    *ret = (struct brd_report){
        .age_s = boot_s() - json_number_value(json_object_get(root, "written_s")),
        .refused = (uint64_t)json_integer_value(json_object_get(root, "refused")),
    };
    json_array_foreach(links, i, v)
    {
        if (ret->count == BRD_MAX || !read_link(v, &ret->link[ret->count])) {
            rc = BRD_E_FILE;
            break;
        }
        ret->count++;
    }
    json_decref(root);
    return rc;
}

void brd_report_remove(const char *folder)
{
    base_autoclose int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        unlinkat(fd, BRD_REPORT_FILE, 0);
    }
}

const struct brd_link *brd_report_find(const struct brd_report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->link[i].name, name) == 0) {
            return &report->link[i];
        }
    }
    return NULL;
}
