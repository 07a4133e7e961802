/* SPDX-License-Identifier: Apache-2.0 */
/**
 * near_word.h - which word somebody may have meant
 *
 *     struct near_word n = {.given = "sttaus"};
 *     near_word_try(&n, "status");
 *     near_word_try(&n, "top");
 *     near_word_hint(&n, hint);      "; did you mean status?"
 *
 * The distance is the least number of characters to add, to leave out, to replace, or to swap with
 * their neighbour (optimal string alignment). A word is near if that is at most a third of the
 * length of what was given. Nothing here allocates or keeps state.
 */
#pragma once

#include <stddef.h>

#define NEAR_WORD_MAX 64u        /* bytes; longer words are never near */
#define NEAR_WORD_HINT_BYTES 96u /* of a text of near_word_hint() */

struct near_word {
    const char *given; /* borrowed */
    const char *word;  /* the nearest so far; NULL: none is near */
    size_t distance;
};

/** near_word_try() - @word is one that may have been meant; borrowed as long as @n. The first of
 * equally near ones stays. */
void near_word_try(struct near_word *n, const char *word);

/** near_word_hint() - writes "; did you mean WORD?", or "" if none is near. Return: @ret. */
const char *near_word_hint(const struct near_word *n, char ret[NEAR_WORD_HINT_BYTES]);
