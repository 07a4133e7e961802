/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_piped, mix_ort - clients of several models at given rates (see client.h)
 *
 *     mix_piped [--limit N] NAME FILE.onnx INPUT.f32 SHAPE DEADLINE_MS ...
 *     mix_ort --library libonnxruntime.so --way pools|pinned|shared|deadline [--spin 0|1]
 *             [--cpus N,N] [--limit N] NAME FILE.onnx INPUT.f32 SHAPE DEADLINE_MS ...
 *
 * Prints "ready". A line on stdin is SECONDS SEED CLOCK RATE..., with a rate for each model in
 * frames a second, 0: none. CLOCK 0: as fast as the program can, by the same part of all rates. The
 * answer is one line of JSON: {"start": ns, "models": [{"refused": N, "frames": [[due_ns,
 * answered_ns], ...]}, ...]} on CLOCK_MONOTONIC.
 */
#include "bench/mix/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/base.h"

#define JITTER 0.1 /* of a period: how far a frame is due from an even beat, at most */
#define ARGUMENTS 5

static double random_part(uint64_t *state)
{
    /* xorshift64*, Vigna 2016 */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717ull) >> 11) / (double)(1ull << 53);
}

static void append(struct mix_model *m, uint64_t due_ns, uint64_t done_ns)
{
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 4096;
        m->due = realloc(m->due, m->capacity * sizeof(*m->due));
        m->done = realloc(m->done, m->capacity * sizeof(*m->done));
        if (!m->due || !m->done) {
            fputs("mix: no memory\n", stderr);
            exit(1);
        }
    }
    m->due[m->count] = due_ns;
    m->done[m->count++] = done_ns;
}

static void beat(struct mix_model *m)
{
    m->next_s = (m->phase++ + JITTER * random_part(&m->random)) / m->rate;
}

static void begin(struct mix_model *m, double rate, uint64_t seed)
{
    m->count = m->in_flight = 0;
    m->rate = rate;
    m->random = seed * 0x9e3779b97f4a7c15ull + 1;
    m->phase = random_part(&m->random);
    if (rate > 0) {
        beat(m);
    }
}

static struct mix_model *earliest(struct mix *mix)
{
    struct mix_model *best = NULL;

    for (size_t i = 0; i < mix->count; i++) {
        struct mix_model *m = &mix->models[i];

        if (m->rate > 0 && (!best || m->next_s < best->next_s)) {
            best = m;
        }
    }
    return best;
}

uint64_t mix_next(struct mix *mix, size_t *ret_model, size_t *ret_frame)
{
    for (;;) {
        struct mix_model *m = earliest(mix);
        uint64_t now = base_now_ns(), due;
        bool room;

        if (!m || (mix->clock ? m->next_s >= mix->seconds
                              : now >= mix->start_ns + (uint64_t)(mix->seconds * 1e9))) {
            return UINT64_MAX;
        }
        room = m->in_flight < mix->limit;
        if (!mix->clock && !room) {
            return UINT64_MAX;
        }
        due = mix->clock ? mix->start_ns + (uint64_t)(m->next_s * 1e9) : now;
        if (due > now) {
            return due;
        }
        append(m, due, room ? 0 : MIX_REFUSED);
        beat(m);
        if (room) {
            m->in_flight++;
            *ret_model = (size_t)(m - mix->models);
            *ret_frame = m->count - 1;
            return 0;
        }
    }
}

void mix_answer(struct mix_model *m, size_t frame, uint64_t done_ns)
{
    m->done[frame] = done_ns;
    m->in_flight--;
}

size_t mix_in_flight(const struct mix *mix)
{
    size_t sum = 0;

    for (size_t i = 0; i < mix->count; i++) {
        sum += mix->models[i].in_flight;
    }
    return sum;
}

static void show(const struct mix *mix)
{
    printf("{\"start\": %" PRIu64 ", \"models\": [", mix->start_ns);
    for (size_t i = 0; i < mix->count; i++) {
        const struct mix_model *m = &mix->models[i];
        const char *comma = "";
        size_t refused = 0;

        printf("%s{\"frames\": [", i ? ", " : "");
        for (size_t k = 0; k < m->count; k++) {
            if (m->done[k] == MIX_REFUSED) {
                refused++;
                continue;
            }
            printf("%s[%" PRIu64 ", %" PRIu64 "]", comma, m->due[k], m->done[k]);
            comma = ", ";
        }
        printf("], \"refused\": %zu}", refused);
    }
    puts("]}");
    fflush(stdout);
}

static int slice(struct mix *mix, char *line)
{
    char *at;
    uint64_t seed;

    mix->seconds = strtod(line, &at);
    seed = strtoull(at, &at, 10);
    mix->clock = strtol(at, &at, 10) != 0;
    for (size_t i = 0; i < mix->count; i++) {
        begin(&mix->models[i], strtod(at, &at), seed + i + 1);
    }
    mix->start_ns = base_now_ns();
    if (mix_serve(mix) != 0) {
        return -1;
    }
    show(mix);
    return 0;
}

static int read_model(struct mix *mix, char **word)
{
    struct mix_model *m = &mix->models[mix->count];
    const char *at = word[3];
    size_t bytes = sizeof(float);
    FILE *f;
    bool ok;

    if (mix->count == MIX_MODELS_MAX) {
        fprintf(stderr, "mix: more than %d models\n", MIX_MODELS_MAX);
        return -1;
    }
    m->name = word[0];
    m->file = word[1];
    m->deadline_ns = (uint64_t)(strtod(word[4], NULL) * BASE_NS_PER_MS);
    for (char *end; *at && m->rank < MIX_RANK_MAX; at = *end ? end + 1 : end) {
        m->shape[m->rank] = strtoll(at, &end, 10);
        bytes *= (size_t)m->shape[m->rank++];
    }
    f = fopen(word[2], "rb");
    m->input = malloc(bytes);
    m->input_bytes = bytes;
    ok = f && m->input && fread(m->input, 1, bytes, f) == bytes;
    if (f) {
        fclose(f);
    }
    if (!ok) {
        fprintf(stderr, "mix: %s does not hold %s numbers\n", word[2], word[3]);
        return -1;
    }
    mix->count++;
    return 0;
}

static void read_cpus(struct mix *mix, const char *at)
{
    for (char *end; *at && mix->cpu_count < MIX_CPUS_MAX; at = *end ? end + 1 : end) {
        mix->cpus[mix->cpu_count++] = (int)strtol(at, &end, 10);
    }
}

static int read_arguments(struct mix *mix, int argc, char **argv)
{
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--limit") == 0) {
            mix->limit = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--cpus") == 0) {
            read_cpus(mix, value);
        } else if (strcmp(argv[i], "--spin") == 0) {
            mix->spin = strcmp(value, "0") != 0;
        } else if (strcmp(argv[i], "--way") == 0) {
            mix->way = value;
        } else if (strcmp(argv[i], "--library") == 0) {
            mix->library = value;
        } else {
            break;
        }
    }
    if (i >= argc || (argc - i) % ARGUMENTS != 0 || mix->limit == 0) {
        fputs("usage: [OPTIONS] NAME FILE.onnx INPUT.f32 SHAPE DEADLINE_MS ...\n", stderr);
        return -1;
    }
    for (; i < argc; i += ARGUMENTS) {
        if (read_model(mix, argv + i) != 0) {
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct mix mix = {.limit = 8, .spin = true};
    char line[512];

    prctl(PR_SET_TIMERSLACK, 1ul);
    if (read_arguments(&mix, argc, argv) != 0) {
        return 2;
    }
    if (mix_open(&mix) != 0) {
        return 1;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (slice(&mix, line) != 0) {
            return 1;
        }
    }
    return 0;
}
