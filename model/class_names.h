/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/class_names.h - names of classes as exporters write them into a file's metadata
 */
#pragma once

#include "model/common/pool.h"

/**
 * mdl_class_names() - reads {0: 'person', 1: "dog"} or ['person', "dog"], Python's or JSON's
 * @ret_count: at most MDL_LABELS_MAX; 0 if the text is of another form, has other escapes than
 * those of quotes and backslashes, or does not count from 0 upward
 * Threads: any. Return: the names, in @pool; NULL: none, or out of memory.
 */
char **mdl_class_names(const char *text, struct mdl_pool *pool, size_t *ret_count);
