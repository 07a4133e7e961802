/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from scores of characters at each of T steps: CTC (Graves et al. 2006), best path. The
 * character of the highest score is taken at each step; repetitions are one; then blanks go.
 *
 * Scores are [T][C] with any dimensions of 1 (layout channels: [C][T]), and C is the alphabet, the
 * space if there is one, and the blank. The text's score is the mean over its characters, each of
 * its first step.
 */
#include "base/base.h"
#include "ipc/decode/decoder.h"

static size_t sizes(const struct piped_decoder *d, const struct decode_tensor *t, size_t *ret_steps)
{
    bool channels = d->set.layout == OUTPUT_CHANNELS;
    size_t last = t->rank ? t->dim[t->rank - 1] : 1;

    *ret_steps = channels ? last : t->count / last;
    return channels ? t->count / last : last;
}

static int check(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    size_t letters = json_array_size(d->set.alphabet) + d->set.space, steps, large = 0;

    for (size_t i = 0; i < t->rank; i++) {
        large += t->dim[i] > 1;
    }
    d->classes = sizes(d, t, &steps);
    if (large > 2 || d->classes != letters + 1) {
        return decode_bad(t,
                          "has scores of %zu characters; the alphabet has %zu%s, and there is one "
                          "blank",
                          d->classes, letters, d->set.space ? " with the space" : "");
    }
    return decode_scratch(d, d->classes * sizeof(double));
}

static void append(struct piped_decoder *d, size_t letter)
{
    const json_t *s = json_array_get(d->set.alphabet, letter);
    const char *text = s ? json_string_value(s) : " ";
    size_t bytes = strlen(text);

    if (decode_grow(d, &d->text, &d->text_size, d->text_bytes + bytes + 1, 1)) {
        memcpy(d->text + d->text_bytes, text, bytes);
        d->text_bytes += bytes;
    }
}

static void run(struct piped_decoder *d)
{
    const struct decode_tensor *t = d->only;
    bool channels = d->set.layout == OUTPUT_CHANNELS;
    size_t steps, count = sizes(d, t, &steps), before = SIZE_MAX, letters = 0;
    size_t blank = d->set.blank == OUTPUT_LAST ? count - 1 : 0;
    double *s = d->scratch, sum = 0;

    for (size_t i = 0; i < steps; i++) {
        size_t best;

        for (size_t k = 0; k < count; k++) {
            s[k] = (double)t->values[channels ? k * steps + i : i * count + k];
        }
        decode_activated(d, s, count);
        best = decode_best(s, 0, count);
        if (best != SIZE_MAX && best != blank && best != before) {
            append(d, best - (blank == 0));
            sum += s[best];
            letters++;
        }
        before = best;
    }
    if (decode_grow(d, &d->text, &d->text_size, d->text_bytes + 1, 1)) {
        d->text[d->text_bytes] = '\0';
        d->result.text = d->text;
        d->result.text_score = letters ? (float)(sum / (double)letters) : 0;
    }
}

const struct decode_kind decode_ctc = {check, run, .one = true};
