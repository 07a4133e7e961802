/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench/searches/check.h - what must hold of the searches, checked on this machine: `pipesim check`
 *
 * Each check prints one line, "ok NAME: figures" or "FAIL NAME: figures". Times are printed, never
 * judged.
 */
#pragma once

#include "tuner/pipesim/platform.h"
#include "tuner/pipesim/run.h"

struct psim_checks {
    uint64_t seed;
    double share; /* of the random cases: 1, or less for slow builds */
    size_t passed, failed;
    const char *table_path; /* where the whole table goes as Markdown; NULL: nowhere */
};

/** psim_check() - prints and counts one result. @format: the figures. */
__attribute__((format(printf, 4, 5))) void psim_check(struct psim_checks *c, bool ok,
                                                      const char *name, const char *format, ...);

void psim_check_facts(struct psim_checks *c);  /* printed figures of the papers */
void psim_check_solver(struct psim_checks *c); /* brute force, bound and latency, solve times */
void psim_check_uncertainty(struct psim_checks *c); /* exact with a wrong table */
void psim_check_boards(struct psim_checks *c);      /* the hierarchical DSE on four boards */
void psim_check_table(struct psim_checks *c); /* every network on every machine; papers' claims */
