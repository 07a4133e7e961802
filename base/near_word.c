/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near_word.h"

#include "base/base.h"

/** near_word_distance() - of two words of at most NEAR_WORD_MAX bytes. */
static size_t near_word_distance(const char *a, const char *b)
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

            row[j] = base_min(changed, 1 + base_min(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = base_min(row[j], 1 + before[j - 2]);
            }
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[n];
}

void near_word_try(struct near_word *n, const char *word)
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

const char *near_word_hint(const struct near_word *n, char ret[NEAR_WORD_HINT_BYTES])
{
    *ret = '\0';
    if (n->word) {
        snprintf(ret, NEAR_WORD_HINT_BYTES, "; did you mean %s?", n->word);
    }
    return ret;
}
