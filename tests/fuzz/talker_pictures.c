/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures that fuzzed clients send, and the answers that are right. */
#include <math.h>

#include "base/base.h"
#include "ipc/wire.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/talker.h"

#define INPUTS (3u * 6 * 6)
#define OUTPUTS_MAX 5u
#define TOLERANCE 2e-3f /* of the largest output: those as f16 are rounded to 2^-11 */

/* Of one file, format and picture. */
struct answer {
    bool known;
    float value[OUTPUTS_MAX];
};
static struct answer answers[RIG_FILES][IPC_PIX_COUNT][2][2][2][TALK_PICTURES];

static size_t outputs(enum rig_file file)
{
    return file == RIG_B ? OUTPUTS_MAX : 3;
}

size_t talk_input(const struct talk_format *f, unsigned picture, bool wide, uint8_t *ret)
{
    static const uint8_t twelfths[IPC_PIX_COUNT] = {0, 36, 36, 12, 18, 24};
    uint64_t state = 1 + picture;
    float values[INPUTS];
    size_t bytes = (size_t)(wide ? 32 : 36) * twelfths[f->pixfmt] / 12;

    if (f->pixfmt != IPC_PIX_TENSOR) {
        for (size_t i = 0; i < bytes; i++) {
            ret[i] = (uint8_t)base_splitmix64(&state);
        }
        return bytes;
    }
    for (size_t i = 0; i < INPUTS; i++) { /* exact as f16, too */
        values[i] = (float)(base_splitmix64(&state) % 512) / 256 - 1;
    }
    if (f->in16) {
        ipc_f16_encode(values, INPUTS, ret);
        return INPUTS * 2;
    }
    memcpy(ret, values, sizeof(values));
    return sizeof(values);
}

size_t talk_output_bytes(const struct talk_format *f, enum rig_file file)
{
    return outputs(file) * (f->out16 ? 2 : 4);
}

static bool near(const float *a, const float *b, size_t count)
{
    float most = 0, apart = 0;

    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(a[i]));
        apart = fmaxf(apart, fabsf(a[i] - b[i]));
    }
    return apart <= TOLERANCE * most; /* not for NAN */
}

void talk_judge(const struct talk_sent *s, const uint8_t *output, size_t bytes)
{
    enum rig_file file = s->versions ? (enum rig_file)__builtin_ctz(s->versions) : RIG_FILES;
    struct answer *of_format, *a;
    float values[OUTPUTS_MAX];
    size_t count = outputs(file);

    MUST(file < RIG_FILES);
    if (s->versions & (s->versions - 1)) {
        return; /* by one of several files */
    }
    MUST(bytes == talk_output_bytes(&s->format, file));
    if (s->format.out16) {
        ipc_f16_decode(output, count, values);
    } else {
        memcpy(values, output, bytes);
    }
    of_format = answers[file][s->format.pixfmt][s->format.in16][s->format.out16][s->wide ? 1 : 0];
    a = &of_format[s->picture];
    if (a->known) {
        MUST(near(a->value, values, count));
        return;
    }
    memcpy(a->value, values, sizeof(a->value));
    a->known = true;
    for (unsigned i = 0; i < TALK_PICTURES; i++) {
        MUST(i == s->picture || !of_format[i].known || !near(of_format[i].value, values, count));
    }
}
