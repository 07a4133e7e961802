/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/uevent.h - the kernel's word that a core came or went, by netlink
 *
 * Invariant: only the kernel is believed (port 0, its own multicast group), and of a datagram only
 * what is inside its bytes: a hostile or cut one is refused, never half read. In a network
 * namespace of its own, or where address families are restricted, there is no such socket or it
 * stays silent; the caller polls in any case, and this makes it faster. Frequencies and limits send
 * no event at all. Threads: any, no state but the descriptor; no allocation; never blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <linux/netlink.h>

#define GOV_UEVENT_BYTES_MAX 2048u /* the kernel's own UEVENT_BUFFER_SIZE */
#define GOV_UEVENT_TEXT_MAX 32u

enum gov_uevent_kind {
    GOV_UEVENT_OTHER,       /* well-formed, and of no interest here */
    GOV_UEVENT_CPU_ONLINE,  /* action online or add of a cpu device */
    GOV_UEVENT_CPU_OFFLINE, /* action offline or remove */
    GOV_UEVENT_THERMAL,     /* change of a thermal zone */
    GOV_UEVENT_GPIO,        /* a GPIO chip came or went */
    GOV_UEVENT_POWER,       /* a power supply changed */
};

struct gov_uevent {
    enum gov_uevent_kind kind;
    int32_t cpu;                      /* kernel number, or -1 */
    char action[GOV_UEVENT_TEXT_MAX]; /* "online", "offline", "add", ...; cut to its size */
};

enum {
    GOV_UEVENT_E_DENIED = 1, /* there are no such sockets for this process */
    GOV_UEVENT_E_NONE,       /* nothing to read now */
    GOV_UEVENT_E_BAD,        /* a datagram that was not from the kernel, or malformed: dropped */
    GOV_UEVENT_E_LOST,       /* events were lost: look for yourself */
};

/** gov_uevent_open() - @ret_fd: owned, non-blocking. Return: 0, GOV_UEVENT_E_DENIED or -errno. */
int gov_uevent_open(int *ret_fd);
/** gov_uevent_read() - one datagram. Return: 0, GOV_UEVENT_E_NONE, _BAD, _LOST, or -errno: the
 * socket is of no more use. */
int gov_uevent_read(int fd, struct gov_uevent *ret);
/**
 * gov_uevent_parse() - a datagram: "ACTION@DEVPATH", then "KEY=VALUE", each with its zero byte
 * @bytes: @size bytes of anything, borrowed. Return: 0 or GOV_UEVENT_E_BAD.
 */
int gov_uevent_parse(const char *bytes, size_t size, struct gov_uevent *ret);
