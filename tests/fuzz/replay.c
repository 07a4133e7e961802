/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without a fuzzer, as an ordinary test with a bounded number of rounds.
 *
 *     fuzz_x [-n ROUNDS] [-m MAX_BYTES] FILE|FOLDER...
 *     fuzz_x -w FOLDER [FILE|FOLDER...]     writes the seeds and ends
 *
 * Every file is fed to LLVMFuzzerTestOneInput() as it is; then ROUNDS mutations of them (bits
 * flipped, numbers made extreme, pieces cut, doubled and taken from another seed, ends cut off),
 * with the seed of PIPED_TEST_SEED. A crash is the failure; the seed and the round are printed
 * first, and the input is left in fuzz-last.bin. A target may define fuzz_seed() to add seeds that
 * it makes itself. Linked with -fsanitize=fuzzer instead of this file, a target is a real fuzzer
 * (tests/fuzzing.py).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/fuzz/replay.h"

#define SEEDS_MAX 4096u

struct seed {
    unsigned char *data;
    size_t bytes;
};

static struct seed seeds[SEEDS_MAX];
static size_t seed_count, bytes_max = 65536;
static uint64_t state;
static const unsigned char *last_data;
static size_t last_bytes;

__attribute__((weak)) size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    (void)index;
    (void)data;
    (void)cap;
    return 0;
}

static uint64_t next(void)
{
    return base_splitmix64(&state);
}

static size_t below(size_t n)
{
    return n ? (size_t)(next() % n) : 0;
}

static void on_crash(int signal)
{
    int fd = open("fuzz-last.bin", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd >= 0) {
        ssize_t n = write(fd, last_data, last_bytes);

        (void)n;
        close(fd);
    }
    raise(signal); /* the handler is gone (SA_RESETHAND): ends as it would have */
}

static void run(const unsigned char *data, size_t bytes)
{
    /* An exact copy, so that a sanitizer sees reads past the end. */
    unsigned char *copy = malloc(bytes ? bytes : 1);

    if (!copy) {
        abort();
    }
    memcpy(copy, data, bytes);
    last_data = data;
    last_bytes = bytes;
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

static void add_seed(const unsigned char *data, size_t bytes)
{
    if (seed_count < SEEDS_MAX && bytes > 0) {
        seeds[seed_count].data = malloc(bytes);
        if (!seeds[seed_count].data) {
            abort();
        }
        memcpy(seeds[seed_count].data, data, bytes);
        seeds[seed_count++].bytes = bytes;
    }
}

static void add_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    if (S_ISDIR(st.st_mode)) {
        struct dirent **list = NULL;
        int n = scandir(path, &list, NULL, alphasort);

        for (int i = 0; i < n; i++) {
            char inner[4096];

            if (list[i]->d_name[0] != '.') {
                snprintf(inner, sizeof(inner), "%s/%s", path, list[i]->d_name);
                add_path(inner);
            }
            free(list[i]);
        }
        free(list);
    } else if (S_ISREG(st.st_mode) && (size_t)st.st_size <= bytes_max) {
        unsigned char *data = malloc((size_t)st.st_size + 1);
        FILE *f = fopen(path, "rb");
        size_t n = f && data ? fread(data, 1, (size_t)st.st_size, f) : 0;

        if (f) {
            fclose(f);
        }
        add_seed(data, n);
        free(data);
    }
}

static size_t mutate_once(unsigned char *d, size_t n, size_t cap)
{
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '[', '/', '\\', '-', '9'};
    size_t at = below(n), length = 1 + below(n - at < 64 ? n - at : 64);
    const struct seed *other = &seeds[below(seed_count)];

    switch (below(10)) {
    case 0: /* a bit */
        d[at] ^= (unsigned char)(1u << below(8));
        return n;
    case 1: /* a byte */
        d[at] = (unsigned char)next();
        return n;
    case 2: /* an extreme byte */
        d[at] = extremes[below(sizeof(extremes))];
        return n;
    case 8: /* a small step: the next field, type, length */
    case 9:
        d[at] += (unsigned char)(next() & 1 ? 1 : 255);
        return n;
    case 3: /* an extreme number */
        for (size_t i = at; i < n && i < at + 8; i++) {
            d[i] = next() & 1 ? 0xff : 0x00;
        }
        return n;
    case 4: /* cut the end off */
        return at ? at : 1;
    case 5: /* take a piece out */
        memmove(d + at, d + at + length, n - at - length);
        return n - length ? n - length : 1;
    case 6: /* double a piece */
        if (n + length <= cap) {
            memmove(d + at + length, d + at, n - at);
            return n + length;
        }
        return n;
    default: /* a piece of another seed */
        length = length < other->bytes ? length : other->bytes;
        memcpy(d + at, other->data + below(other->bytes - length + 1),
               length < n - at ? length : n - at);
        return n;
    }
}

static int write_seeds(const char *folder)
{
    for (size_t i = 0; i < seed_count; i++) {
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%zu", folder, i);
        f = fopen(path, "wb");
        if (f == NULL || fwrite(seeds[i].data, 1, seeds[i].bytes, f) != seeds[i].bytes ||
            fclose(f) != 0) {
            fprintf(stderr, "%s: %s\n", path, strerror(errno));
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *text = getenv("PIPED_TEST_SEED"), *to = NULL;
    uint64_t first = text ? strtoull(text, NULL, 0) : 20260601;
    size_t rounds = 2000, cap;
    unsigned char *buffer;
    int option;

    while ((option = getopt(argc, argv, "n:m:w:")) != -1) {
        if (option == 'n') {
            rounds = strtoull(optarg, NULL, 0);
        } else if (option == 'm') {
            bytes_max = strtoull(optarg, NULL, 0);
        } else if (option == 'w') {
            to = optarg;
        } else {
            return 2;
        }
    }
    cap = bytes_max + 64;
    buffer = malloc(cap);
    if (!buffer) {
        return 1;
    }
    for (int i = optind; i < argc; i++) {
        add_path(argv[i]);
    }
    for (size_t i = 0, n; (n = fuzz_seed(i, buffer, bytes_max)) > 0; i++) {
        add_seed(buffer, n);
    }
    if (to) {
        return write_seeds(to);
    }
    if (seed_count == 0) {
        fprintf(stderr, "skipped: there are no seeds\n");
        return 77;
    }
    signal(SIGABRT, SIG_DFL);
    for (int s = 0; s < 4; s++) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
        struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};

        sigaction(signals[s], &action, NULL);
    }
    printf("%zu seeds, %zu rounds, PIPED_TEST_SEED=%llu\n", seed_count, rounds,
           (unsigned long long)first);
    fflush(stdout);
    for (size_t i = 0; i < seed_count; i++) {
        run(seeds[i].data, seeds[i].bytes);
    }
    for (size_t i = 0; i < rounds; i++) {
        const struct seed *s;
        size_t n, times;

        state = first + i * 0x100000001b3ull; /* a round can be repeated alone */
        s = &seeds[below(seed_count)];
        n = s->bytes;
        memcpy(buffer, s->data, n);
        for (times = 1 + below(5); times > 0; times--) {
            n = mutate_once(buffer, n, cap);
        }
        run(buffer, n);
    }
    for (size_t i = 0; i < seed_count; i++) {
        free(seeds[i].data);
    }
    free(buffer);
    printf("done\n");
    return 0;
}
