/* SPDX-License-Identifier: Apache-2.0 */
/* The words of `output` that both its keys and who reads them need. */
#include <stdio.h>
#include <string.h>

#include "base/append.h"
#include "base/near_word.h"
#include "base/output_keys.h"

#define WORD(ID, word) #word,
const char *const output_kind_words[] = {OUTPUT_KINDS(WORD) NULL};
const char *const output_activation_words[] = {"none", "sigmoid", "softmax", NULL};
const char *const output_role_words[] = {"boxes",   "scores", "objectness", "keypoints",
                                         "classes", "count",  "indices",    NULL};

int output_word(const char *const *words, const char *text, char why[OUTPUT_WHY_BYTES])
{
    struct near_word n = {.given = text ? text : ""};
    char hint[NEAR_WORD_HINT_BYTES];

    snprintf(why, OUTPUT_WHY_BYTES, "must be one of:");
    for (int i = 0; words[i]; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            return i;
        }
        near_word_try(&n, words[i]);
        base_append(why, OUTPUT_WHY_BYTES, " \"%s\"", words[i]);
    }
    if (text) {
        base_append(why, OUTPUT_WHY_BYTES, ", not \"%.30s\"%s", text, near_word_hint(&n, hint));
    }
    return -1;
}
