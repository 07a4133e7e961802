/* SPDX-License-Identifier: Apache-2.0 */
/* What piped-link reports of its links. */
#include <float.h>

#include "ipc/boards/board_json.h"

#define COUNT_MAX 0x1p62

/* Runs on while the machine sleeps, and begins again with it, as the file does. */
static double boot_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / (double)BASE_NS_PER_S;
}

static const struct brd_field link_fields[] = {
    {"name", BRD_TEXT, BRD_AT(brd_link, name)},
    {"up", BRD_FLAG, BRD_AT(brd_link, up)},
    {"for_s", BRD_NUMBER, BRD_AT(brd_link, for_s), .most = DBL_MAX},
    {"losses", BRD_COUNT, BRD_AT(brd_link, losses), .most = COUNT_MAX},
    {"frames", BRD_COUNT, BRD_AT(brd_link, frames), .most = COUNT_MAX},
    {"message_us", BRD_NUMBER, BRD_AT(brd_link, message_us), .most = DBL_MAX,
     .only_if = offsetof(struct brd_link, measured)},
    {"kilobyte_us", BRD_NUMBER, BRD_AT(brd_link, kilobyte_us), .most = DBL_MAX,
     .only_if = offsetof(struct brd_link, measured)},
};
static const struct brd_object link_object = {BRD_OBJECT(link_fields)};

static const struct brd_field report_fields[] = {
    {"written_s", BRD_NUMBER, BRD_AT(brd_report, written_s), .most = DBL_MAX},
    {"refused", BRD_COUNT, BRD_AT(brd_report, refused), .most = COUNT_MAX},
    {"links", BRD_ITEMS(brd_report, link, count), .most = BRD_MAX, .item = &link_object},
};
static const struct brd_object report_object = {BRD_OBJECT(report_fields)};

int brd_report_write(const char *folder, struct brd_report *report)
{
    base_autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return -errno;
    }
    report->written_s = boot_s();
    return brd_file_write(fd, BRD_REPORT_FILE, 0644, brd_put(&report_object, report));
}

int brd_report_read(const char *folder, struct brd_report *ret)
{
    base_autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_auto_t *root = NULL;
    int rc = fd < 0 ? -errno : brd_file_read(fd, BRD_REPORT_FILE, false, &root);

    if (rc) {
        return rc;
    }
    *ret = (struct brd_report){0};
    rc = brd_get(&report_object, root, ret) ? 0 : BRD_E_FILE;
    ret->age_s = boot_s() - ret->written_s;
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
