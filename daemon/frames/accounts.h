/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/accounts.h - what each user's clients hold, over all their connections
 *
 * The limits per user use these counts. conn.c writes connections, ipc/server/mapped_memory.c
 * writes memory_bytes. Client memory and buffers may outlive their connection, so an account lives
 * until all are 0.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

struct dmn_account {
    LIST_ENTRY(dmn_account) linked; /* in the list, which owns it */
    uid_t uid;
    size_t connections;
    size_t memory_bytes; /* of mapped client memory */
    /* of buffers, over all its connections; only record.h's functions write it */
    size_t inline_bytes;
};
LIST_HEAD(dmn_accounts, dmn_account);

/**
 * dmn_account_get() - the account of @uid, added to @list if it is missing
 *
 * Return: borrowed from the list until a dmn_account_trim() finds it empty; NULL: out of memory.
 */
struct dmn_account *dmn_account_get(struct dmn_accounts *list, uid_t uid);
/** dmn_account_trim() - frees the accounts that hold nothing. */
void dmn_account_trim(struct dmn_accounts *list);
