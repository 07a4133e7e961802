/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/pipectl/trace_spool.h - keeps batches of a trace as they came, to be converted afterwards
 *
 * Converting takes many times as long as keeping, and the cores may be those that are traced. A
 * batch goes into a temporary file beside the trace's, which nobody sees and which goes with the
 * program; its records are kept as bytes.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct trace_spool;
/** trace_spool_new() - @beside: the file whose folder it uses. Return: NULL with errno set. */
struct trace_spool *trace_spool_new(const char *beside);
struct trace_spool *trace_spool_free(struct trace_spool *s);
/** trace_spool_add() - keeps @batch, borrowed. Return: 0 or an errno. */
int trace_spool_add(struct trace_spool *s, const json_t *batch);

/* One part of a batch: a list without records (@records NULL), or records of @track. */
struct trace_part {
    json_t *batch; /* borrowed until the next call */
    uint32_t track;
    const uint32_t *records; /* little-endian, borrowed until the next call */
    size_t count;
};
/** trace_spool_rewind() - the next part is the first. Return: 0 or an errno. */
int trace_spool_rewind(struct trace_spool *s);
/** trace_spool_next() - Return: 0 with @ret set; -1: there are no more; an errno. */
int trace_spool_next(struct trace_spool *s, struct trace_part *ret);
