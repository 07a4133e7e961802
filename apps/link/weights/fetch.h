/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/weights/fetch.h - weights reach a board by content
 *
 * A board that shall serve a segment asks the head for the leaf list of the model's file, then for
 * the leaves that the segment needs and that it does not have (store.h). Each is checked
 * against the list, and the list against the model's identity; so it does not matter who sends. A
 * few are on their way at a time. When the peer is gone, what is missing is asked for again, of any
 * peer that a fetch of this file named, as soon as one is there. What came stays, so a return costs
 * nothing; but what a fetch needs is read and checked again, once in a process.
 *
 * The head answers from the file of the route, which a callback of fetch_new() names. It hashes the
 * file once, and each leaf again before it is sent.
 *
 * Threads: the loop's; what waits for a disk or takes long runs on a thread of its own
 * (apps/link/weights/jobs.c).
 */
#pragma once

#include "apps/link/common/link.h"

/* Return: the path of the file with this identity, of which other boards may have leaves; NULL: of
 * none. Borrowed until routes change. */
typedef const char *fetch_path(const struct link *l, const uint8_t identity[LNK_HASH_BYTES]);

/** fetch_new() - sets l->fetch. @state_folder: of the store, which is opened when the first board
 * asks for something; borrowed. @bytes_max: of the store's files; 0: only the disk's size.
 * @path_of: what is served; called by fetch_go(). Return: 0, -errno. */
int fetch_new(struct link *l, const char *state_folder, uint64_t bytes_max, fetch_path *path_of);
/** fetch_free() - clears l->fetch; after the transport is closed. No done() is called. */
void fetch_free(struct link *l);
/** fetch_fd() - readable when fetch_go() has something to do. */
int fetch_fd(const struct link *l);
/** fetch_go() - asks, answers, calls done(). In each turn of the loop, and at least once a
 * second. */
void fetch_go(struct link *l, uint64_t now_ns);

/**
 * fetch_begin() - gets the leaves of a model's file that a segment needs
 * @head_peer: who has the file
 * @leaves: "0-3,7"; "": all
 * @done: called once, by fetch_go(), unless the fetch is cancelled. Status 0: @path_or_why is the
 * path of the file, in which the leaves are; it is in use until fetch_release(). Else a status of
 * the protocol, and why: RESOURCE_EXHAUSTED: no room on the disk or under the limit; UNAVAILABLE:
 * the head does not have the file; PROTOCOL: it sends wrong leaves; INVALID_ARGUMENT: there are no
 * such leaves; INTERNAL: the disk fails. It may be tried again later.
 *
 * While the peer is away the fetch waits. Return: 0; -EINVAL: @leaves; -ENOMEM.
 */
int fetch_begin(struct link *l, size_t head_peer, const uint8_t identity[LNK_HASH_BYTES],
                const char *leaves, void (*done)(void *arg, int status, const char *path_or_why),
                void *arg);
/** fetch_cancel() - ends all fetches with @arg that are not done. Return: how many. */
size_t fetch_cancel(struct link *l, const void *arg);
/** fetch_release() - the file of a fetch that is done with status 0 is no longer used. Files are
 * removed only when nobody uses them, and then only for want of room. */
void fetch_release(struct link *l, const uint8_t identity[LNK_HASH_BYTES]);

/** fetch_want(), fetch_leaf() - a WANT or LEAF has come. */
link_take fetch_want, fetch_leaf;
/** fetch_peer_gone() - what it was asked for, or asked for, is void. */
void fetch_peer_gone(struct link *l, size_t peer);
