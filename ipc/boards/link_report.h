/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/link_report.h - what piped-link reports of its links
 *
 * A file in its runtime folder, replaced as a whole, at least every BRD_REPORT_EVERY_S. piped-link
 * writes it, and removes it when it ends; pipectl reads it. No keys are in it. Threads: any.
 */
#pragma once

#include "ipc/boards/known_boards.h"

#define BRD_RUNTIME_FOLDER "/run/piped-link"
#define BRD_REPORT_FILE "links.json"
#define BRD_REPORT_EVERY_S 2
#define BRD_REPORT_STALE_S 10 /* older: who wrote it hangs, or was killed */

/* A link to another board. */
struct brd_link {
    char name[BRD_NAME_BYTES];
    bool up;
    double for_s;       /* how long it has been up, or not */
    uint64_t losses;    /* how often it was lost */
    uint64_t frames;    /* of that board that were computed here */
    bool measured;      /* the next two are known */
    double message_us;  /* one way, without its bytes */
    double kilobyte_us; /* for each 1000 bytes more */
};
struct brd_report {
    double written_s; /* on the clock of the machine's start; set by brd_report_write() */
    double age_s;     /* read: how long ago it was written */
    uint64_t refused; /* connections: not on the list, a wrong key, another protocol */
    size_t count;
    struct brd_link link[BRD_MAX];
};

/** brd_report_write() - @folder: NULL: does nothing. Return: 0 or -errno. */
int brd_report_write(const char *folder, struct brd_report *report);
/** brd_report_read() - Return: 0; -ENOENT: piped-link does not run; BRD_E_FILE, _VERSION;
 * -errno. */
int brd_report_read(const char *folder, struct brd_report *ret);
/** brd_report_remove() - the writer ends. @folder: NULL: does nothing. */
void brd_report_remove(const char *folder);
/** brd_report_find() - Return: the link to board @name, or NULL. */
const struct brd_link *brd_report_find(const struct brd_report *report, const char *name);
