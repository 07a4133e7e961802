/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench/searches/check.h - what must hold of the searches, checked on described machines
 *
 * Each check prints one line, "ok NAME: figures" or "FAIL NAME: figures". Times are printed, never
 * judged.
 */
#pragma once

#include "tuner/pipesim/described.h"
#include "tuner/pipesim/run.h"

struct checks {
    uint64_t seed;
    double share; /* of the random cases: 1, or less for slow builds */
    size_t passed, failed;
    const char *table_path; /* where the whole table goes as Markdown; NULL: nowhere */
};

/** check_that() - prints and counts one result. @format: the figures. */
__attribute__((format(printf, 4, 5))) void check_that(struct checks *c, bool ok, const char *name,
                                                      const char *format, ...);

void check_facts(struct checks *c);       /* printed figures of the papers */
void check_solver(struct checks *c);      /* brute force, bound and latency, solve times */
void check_uncertainty(struct checks *c); /* exact with a wrong table */
void check_boards(struct checks *c);      /* the hierarchical DSE on four boards */
void check_table(struct checks *c);       /* every network on every machine; papers' claims */
