/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/share.h - shares the work of a load among threads
 */
#pragma once

#include <stddef.h>

/**
 * mdl_share() - runs fn(arg) on this thread and, at the same time, on up to @threads - 1 others;
 * returns when all have returned. If threads cannot be created, fewer run: so fn must take its work
 * from a shared counter. The other threads block every signal, and what calls off the work of this
 * one (mdl_stop_by()) calls off theirs.
 */
void mdl_share(size_t threads, void (*fn)(void *arg), void *arg);
