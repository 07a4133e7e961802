/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/trace/spool.h - keeps a trace as it comes, to be converted afterwards
 *
 * Converting takes many times as long as keeping, and the cores may be those that are traced. What
 * comes goes into temporary files beside the trace's, which nobody sees and which go with the
 * program.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_spool;
/** trace_spool_new() - @beside: the file whose folder it uses. Return: NULL with errno set. */
struct trace_spool *trace_spool_new(const char *beside);
struct trace_spool *trace_spool_free(struct trace_spool *s);
/** trace_spool_add() - keeps @batch, borrowed. Return: 0 or an errno. */
int trace_spool_add(struct trace_spool *s, const json_t *batch);
/** trace_spool_receive() - keeps the records that @sock has now; does not wait. @ret_end: no more
 * will come. Return: 0 or an errno. */
int trace_spool_receive(struct trace_spool *s, int sock, bool *ret_end);

/** trace_spool_rewind() - what follows gives out what was kept. Return: 0 or an errno. */
int trace_spool_rewind(struct trace_spool *s);
/** trace_spool_batch() - Return: the next batch, borrowed until the next call; NULL: there are no
 * more. */
const json_t *trace_spool_batch(struct trace_spool *s);
/** trace_spool_records() - the next block of records, little-endian, borrowed until the next call.
 * Return: its words; 0: there are no more. */
size_t trace_spool_records(struct trace_spool *s, uint32_t *ret_track, const uint32_t **ret);
