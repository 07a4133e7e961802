/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/models/choosing_private.h - reading, writing and judging choices; only for
 * daemon/models/choosing*.c */
#pragma once

#include "daemon/models/choosing.h"

/** dmn_choose_mix() - FNV-1a of @text and its end, after @h. */
uint64_t dmn_choose_mix(uint64_t h, const char *text);
#define DMN_CHOOSE_MIX_START 0xcbf29ce484222325ull

/** dmn_choose_given() - takes the choice from c->given, if it has one for the class of each kind
 * here. Return: 0; DMN_CHOOSE_E_OTHER_CLASS: it has not, nothing is taken; -ENOMEM. */
enum { DMN_CHOOSE_E_OTHER_CLASS = 1 };
int dmn_choose_given(struct dmn_choose *c, const struct mdl_model *m);

/**
 * dmn_choose_read() - reads the saved choice of this model
 *
 * One that was measured for another CPU, set of libraries, version or objective is taken, too: its
 * primitives compute right wherever they can run. Where one is gone or cannot run, the static
 * preference stands in. c->outdated then says what has changed.
 *
 * A file that is not a valid choice is reported in c->note. Return: 0; DMN_CHOOSE_E_OTHER_OPS:
 * there is an outdated one, of other operators than the model has now; -ENOENT: there is none.
 */
enum { DMN_CHOOSE_E_OTHER_OPS = 1 };
int dmn_choose_read(struct dmn_choose *c, const struct mdl_model *m, const char *name);
/** dmn_choose_measure() - measures the primitives of each kind, and chooses. Sets c->doubt, and
 * adds to c->known and c->tries. Return: 0, or as krn_measure() and krn_choose(). */
int dmn_choose_measure(struct dmn_choose *c, const struct mdl_model *m);
/** dmn_choose_budget_ns() - Return: the time for measuring @kind: c->ms; several times as long
 * where only what is unsure is measured again, so that each of its primitives gets the samples it
 * wants. */
uint64_t dmn_choose_budget_ns(const struct dmn_choose *c, size_t kind);
/** dmn_choose_at_once() - measures what several frames at once gain with the choice of each kind,
 * where that is not known; after measuring, of primitives that take one frame as long it chooses
 * the best. Return: it measured some; what fails stays unknown. */
bool dmn_choose_at_once(struct dmn_choose *c, const struct mdl_model *m);
/** dmn_choose_write() - saves the choice; c->note says so if that fails. Blocks on the file. */
void dmn_choose_write(struct dmn_choose *c, const struct mdl_model *m, const char *name);

/* What cores did, as /proc/stat has it: counted in ticks of 10 ms, and so only good for telling
 * that something happened. */
struct dmn_core_time {
    uint64_t busy_ns;   /* somebody ran, or the hypervisor ran somebody else */
    uint64_t stolen_ns; /* the hypervisor did */
};

/** dmn_core_time_read() - @cpu: < 0: the sum of all. Threads: any; reads a file. Return: 0;
 * -ENOENT: the kernel does not say. */
int dmn_core_time_read(int cpu, struct dmn_core_time *ret);
