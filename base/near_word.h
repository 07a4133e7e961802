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
#include <stdio.h>
#include <string.h>

#define NEAR_WORD_MAX 64u        /* bytes; longer words are never near */
#define NEAR_WORD_HINT_BYTES 96u /* of a text of near_word_hint() */

struct near_word {
    const char *given; /* borrowed */
    const char *word;  /* the nearest so far; NULL: none is near */
    size_t distance;
};

static inline size_t near_word_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** near_word_distance() - of two words of at most NEAR_WORD_MAX bytes. */
static inline size_t near_word_distance(const char *a, const char *b)
{
    size_t rows[3][NEAR_WORD_MAX + 1], n = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n; j++) {
        above[j] = j;
    }
    for (size_t i = 1; a[i - 1]; i++) {
        size_t *free_row = before;

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);

            row[j] = near_word_least(changed, 1 + near_word_least(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = near_word_least(row[j], 1 + before[j - 2]);
            }
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[n];
}

/** near_word_try() - @word is one that may have been meant; borrowed as long as @n. The first of
 * equally near ones stays. */
static inline void near_word_try(struct near_word *n, const char *word)
{
    size_t bytes = strlen(n->given), distance;

    if (bytes > NEAR_WORD_MAX || strlen(word) > NEAR_WORD_MAX) {
        return;
    }
    distance = near_word_distance(n->given, word);
    if (3 * distance <= bytes && (!n->word || distance < n->distance)) {
        n->word = word;
        n->distance = distance;
    }
}

/** near_word_hint() - writes "; did you mean WORD?", or "" if none is near. Return: @ret. */
static inline const char *near_word_hint(const struct near_word *n, char ret[NEAR_WORD_HINT_BYTES])
{
    *ret = '\0';
    if (n->word) {
        snprintf(ret, NEAR_WORD_HINT_BYTES, "; did you mean %s?", n->word);
    }
    return ret;
}
