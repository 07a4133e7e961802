/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/pipeline/scarce_threads.h - a machine that has no more threads
 */
#pragma once

/** scarce_threads() - of the threads that the pipeline starts, the next @left start; further ones
 * fail with EAGAIN, until enough_threads(). */
void scarce_threads(int left);
void enough_threads(void);
