/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/faults/fault_control.h - what a test and the faults library share: one mapped file
 *
 * The library (LD_PRELOAD) maps the file that PIPED_FAULTS names. While `armed`, it counts the
 * calls of `kind`, and fails the one with number `nth`, or all from that one on. The test writes
 * all fields but the last group; it clears `armed` before it changes any. Little-endian, no
 * padding: faults.py has the same layout.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* The calls that can fail. */
enum fault_kind {
    FAULT_MALLOC, /* and calloc, realloc, aligned_alloc, posix_memalign, what libc allocates */
    FAULT_MMAP,
    FAULT_OPEN, /* open, openat, fopen, opendir */
    FAULT_READ, /* read, pread, readv, fread, fgets */
    FAULT_WRITE,
    FAULT_FSYNC,
    FAULT_RENAME,
    FAULT_THREAD, /* pthread_create */
    FAULT_FD,     /* memfd_create, eventfd, pipe2, epoll_create1, socket, fcntl(F_DUPFD) */
    FAULT_EPOLL,  /* epoll_ctl */
    FAULT_ACCEPT,
    FAULT_SEND, /* sendmsg, send, sendto, and writes to sockets */
    FAULT_RECV, /* recvmsg, recv, and reads from sockets */
    FAULT_KINDS
};

enum fault_mode {
    FAULT_ONCE,  /* call number nth fails */
    FAULT_FROM,  /* it and all later ones fail */
    FAULT_COUNT, /* none fails */
};

#define FAULT_SHORT 0 /* instead of an error: half of the bytes, or one, are taken */
#define FAULT_WHERE_BYTES 4096

struct fault_control {
    _Atomic uint32_t armed;     /* 0: no, 1: yes, 2: when main() begins */
    uint32_t kind, mode, error; /* error: errno, or FAULT_SHORT */
    uint64_t nth;               /* from 1 */
    uint64_t strict;            /* not 0: calls of the spared libraries count, too */
    uint64_t libuv;             /* not 0: only those of libuv count */
    /* written by the library */
    _Atomic uint64_t calls, failed;
    char where[FAULT_WHERE_BYTES]; /* who made the first call that failed: "object+0xOFFSET\n"... */
};
