/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/gstreamer/slot_pool.h - buffers whose memory is a slot: a source writes where the daemon
 * reads
 *
 * It never waits: when all slots are in use it hands out usual memory, from which a picture is
 * copied. A slot is free again when nobody has the memory any more.
 */
#pragma once

#include "apps/gstreamer/session.h"

/** pgst_pool_new() - Return: a pool on @s, of which it keeps a reference. */
GstBufferPool *pgst_pool_new(struct pgst_session *s);
