/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/share.h - work of a load that several threads share
 */
#pragma once

#include <stddef.h>

/**
 * mdl_share() - runs fn(arg) on this thread and, at the same time, on up to @threads - 1 others;
 * returns when all have returned. Where threads cannot be had there are fewer: fn has to take its
 * work from a common counter. The others have every signal blocked.
 */
void mdl_share(size_t threads, void (*fn)(void *arg), void *arg);
