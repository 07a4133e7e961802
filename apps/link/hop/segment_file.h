/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/hop/segment_file.h - the file that a segment is loaded from */
#pragma once

#include "apps/link/common/link.h"

struct daemon_conn;

struct segment_file {
    struct link *link;
    struct daemon_conn *conn; /* to the daemon */
    size_t head;              /* the board whose model it is */
    const uint8_t *identity;  /* LNK_HASH_BYTES, valid until found() */
    const char *leaves;       /* that must be there; "": all */
};

/**
 * segment_file_find() - finds a file with this identity
 * @found: called once, perhaps before it returns. @status: 0, or of the protocol; @path_or_why: the
 * path, or a sentence
 * @fetched: called instead, later, if the file had to be fetched from the head: see fetch_begin()
 */
void segment_file_find(const struct segment_file *f,
                       void (*found)(void *arg, int status, const char *path_or_why),
                       void (*fetched)(void *arg, int status, const char *path_or_why), void *arg);
