/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/border_kept.h - what examples said about the borders of models
 *
 * One verdict for each model name, in memory while a model of that name is loaded, and in
 * borders-NAME.v1.json of the state folder. It counts only for the file that was judged: while the
 * model has another hash there is none.
 *
 * Threads: the loop thread; reads and writes a small file.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/boards/board_room.h"
#include "daemon/boards/border_judge.h"
#include "daemon/config/state_file.h"

struct dmn_border_kept {
    LIST_ENTRY(dmn_border_kept) linked;
    char model[64], hash[65]; /* hash: of the model that was judged */
    enum brd_encoding encoding;
    double bound; /* least agreement */
    struct dmn_border_verdict verdict;
};

/** dmn_border_allowed() - Return: enough examples kept their class. */
bool dmn_border_allowed(const struct dmn_border_kept *k);
/** dmn_border_of() - Return: the verdict on just this model, borrowed until it changes; NULL. */
const struct dmn_border_kept *dmn_border_of(const struct dmn_boards *b, const struct dmn_model *m);
/** dmn_border_encoding() - Return: of the model's borders between boards. */
enum brd_encoding dmn_border_encoding(const struct dmn_boards *b, const struct dmn_model *m);

/**
 * dmn_border_keep() - replaces the verdict on @m by @k, which is copied
 *
 * A verdict that allows something stays if @k refuses a coarser encoding. Return: 0; -ENOMEM:
 * nothing is kept.
 */
int dmn_border_keep(struct dmn_boards *b, const struct dmn_model *m,
                    const struct dmn_border_kept *k);
/** dmn_border_save() - writes the verdict on @m to the state folder. @kept: must be given; its
 * error is 0; -ENOENT: no state folder; -errno: the verdict is in memory alone. */
void dmn_border_save(const struct dmn_boards *b, const struct dmn_model *m,
                     struct dmn_state_kept kept);
/** dmn_border_forget() - also in the state folder. @kept: must be given. */
void dmn_border_forget(struct dmn_boards *b, const struct dmn_model *m, struct dmn_state_kept kept);

/** dmn_border_load() - a model was loaded. */
void dmn_border_load(struct dmn_boards *b, const struct dmn_model *m);
/** dmn_border_unload() - the last model of this name ends; NULL: all. The file stays. */
void dmn_border_unload(struct dmn_boards *b, const char *model);
