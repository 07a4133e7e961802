/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench/searches/check.h - what must hold of the searches, checked on described machines
 *
 * Each check prints one line, "ok NAME: figures" or "FAIL NAME: figures"; or "told NAME: figures"
 * for a claim of a paper that does not hold here, as bench/results/searches.md tells. Times of this
 * machine are printed, never judged.
 */
#pragma once

#include "tuner/pipesim/described.h"
#include "tuner/pipesim/run.h"

struct checks {
    uint64_t seed;
    double share; /* of the random cases and seeds: above 0 to 1 */
    size_t passed, failed, told;
    const char *table_path; /* where the whole table goes as Markdown; NULL: nowhere */
};

/** check_that() - prints and counts one result. @format: the figures. */
__attribute__((format(printf, 4, 5))) void check_that(struct checks *c, bool ok, const char *name,
                                                      const char *format, ...);

/** check_claim() - the same of what a paper claims. @known: CHECK_TOLD: our page tells that it does
 * not hold; if it does, that is all right. */
enum check_known { CHECK_HOLDS, CHECK_TOLD };
__attribute__((format(printf, 5, 6))) void check_claim(struct checks *c, bool holds,
                                                       enum check_known known, const char *name,
                                                       const char *format, ...);

/** check_share() - Return: how many of @most random cases or seeds to run, at least 1. */
size_t check_share(const struct checks *c, size_t most);

void check_facts(struct checks *c);       /* printed figures of the papers */
void check_solver(struct checks *c);      /* brute force, bound and latency, solve times */
void check_uncertainty(struct checks *c); /* exact with a wrong table */
void check_papers(struct checks *c);      /* Shisha's and Pipe-search's figures and tables */
void check_boards(struct checks *c);      /* the hierarchical DSE on four boards */
void check_pipe_it(struct checks *c);     /* Pipe-it's tables on its board as described */
void check_table(struct checks *c);       /* every network on every machine; papers' claims */
