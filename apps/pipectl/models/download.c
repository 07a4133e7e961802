/* SPDX-License-Identifier: Apache-2.0 */
/* curl knows HTTP, TLS and proxies. It writes to a pipe, and nothing that comes is believed. */
#include "apps/pipectl/models/models.h"

#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <sys/wait.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/whole_file.h"

#define HEX_BYTES (2 * crypto_hash_sha256_BYTES + 1)
#define REDIRECTS "5"
#define CONNECT_S "30"
#define SLOW_BYTES "100" /* a second, for SLOW_S seconds: nobody sends any more */
#define SLOW_S "60"
#define SHOW_EVERY_NS (200 * BASE_NS_PER_MS)

static volatile sig_atomic_t ended;
static const int endings[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
    ended = number;
}

void ctl_download_signals(void)
{
    for (size_t i = 0; i < base_array_count(endings); i++) {
        sigaction(endings[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    }
}

bool ctl_download_ended(void)
{
    return ended != 0;
}

struct transfer {
    const struct ctl_source *source;
    const char *name;
    int to, from, words; /* from, words: curl's outputs, owned */
    pid_t curl;
    uint64_t got;
    crypto_hash_sha256_state hash;
    uint64_t shown_ns;
};

/* The schemes that a URL and its redirects may have. */
static const char *schemes(const char *url)
{
    return strncmp(url, "https:", 6) == 0  ? "=https"
           : strncmp(url, "http:", 5) == 0 ? "=http,https"
                                           : "=file";
}

/* Return: 0; an error number. */
static int start_curl(struct transfer *t)
{
    const char *url = t->source->url, *allowed = schemes(url);
    const char *const argv[] = {"curl",
                                "-q",
                                "--silent",
                                "--show-error",
                                "--fail",
                                "--location",
                                "--max-redirs",
                                REDIRECTS,
                                "--globoff",
                                "--connect-timeout",
                                CONNECT_S,
                                "--proto",
                                allowed,
                                "--proto-redir",
                                allowed,
                                "--output",
                                "-",
                                "--speed-limit",
                                SLOW_BYTES,
                                "--speed-time",
                                SLOW_S,
                                "--url",
                                url,
                                NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int out[2], err[2], error;
    sigset_t none, ignored;

    if (pipe2(out, O_CLOEXEC) < 0) {
        return errno;
    }
    if (pipe2(err, O_CLOEXEC) < 0) {
        error = errno;
        close(out[0]);
        close(out[1]);
        return error;
    }
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE); /* pipectl ignores it, and children would, too */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error =
        posix_spawnp(&t->curl, "curl", &actions, &attributes, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    close(err[1]);
    t->from = out[0];
    t->words = err[0];
    return error;
}

/* Waits until curl has written something, has ended, or a signal came; the signals are blocked
 * meanwhile, so none is missed. Return: bytes read; 0: its end; -1: a signal or an error. */
static ssize_t next_bytes(const struct transfer *t, void *buffer, size_t bytes)
{
    struct pollfd p = {.fd = t->from, .events = POLLIN};
    sigset_t blocked, before;
    int ready;

    sigemptyset(&blocked);
    for (size_t i = 0; i < base_array_count(endings); i++) {
        sigaddset(&blocked, endings[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, &before);
    ready = ended ? -1 : ppoll(&p, 1, NULL, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready < 0 ? -1 : read(t->from, buffer, bytes);
}

static void show(struct transfer *t, bool last)
{
    uint64_t at = base_now_ns();
    char text[256];

    if (last) {
        ctl_line_wipe();
    } else if (at - t->shown_ns >= SHOW_EVERY_NS) {
        t->shown_ns = at;
        snprintf(text, sizeof(text), "%.128s: %.1f of %.1f MB", t->name, (double)t->got / 1e6,
                 (double)t->source->bytes / 1e6);
        ctl_line_show(text);
    }
}

/* Return: CTL_DONE, with all that curl wrote in the file; else the reason was printed. */
static int take_all(struct transfer *t)
{
    static char buffer[65536];
    ssize_t n;

    while ((n = next_bytes(t, buffer, sizeof(buffer))) != 0) {
        int error;

        if (n < 0 && ended) {
            return ctl_fail("%s: interrupted; nothing was kept", t->name);
        }
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (n < 0) {
            return ctl_fail("%s: %s", t->name, strerror(errno));
        }
        if ((uint64_t)n > t->source->bytes - t->got) {
            return ctl_fail(
                "%s: %s is larger than the catalogue says (%llu bytes); nothing was kept", t->name,
                t->source->url, (unsigned long long)t->source->bytes);
        }
        error = atomic_file_write_all(t->to, buffer, (size_t)n);
        if (error < 0) {
            return ctl_fail("%s: %s", t->name, strerror(-error));
        }
        crypto_hash_sha256_update(&t->hash, (const unsigned char *)buffer, (size_t)n);
        t->got += (uint64_t)n;
        show(t, false);
    }
    return CTL_DONE;
}

/* What curl said, without the end of the line. */
static void read_words(int fd, char *ret, size_t bytes)
{
    ssize_t n = base_read_all(fd, ret, bytes - 1);

    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

/* Ends @state. @ret: the hash as the catalogue writes it. */
static void end_hash(crypto_hash_sha256_state *state, char ret[HEX_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];

    crypto_hash_sha256_final(state, hash);
    sodium_bin2hex(ret, HEX_BYTES, hash, sizeof(hash));
}

/* Compares what came with the catalogue, once curl has ended by itself. */
static int judge(struct transfer *t, int status)
{
    char hex[HEX_BYTES], words[300];

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        read_words(t->words, words, sizeof(words));
        return ctl_fail("%s: %s: %s", t->name, t->source->url, words[0] ? words : "curl was ended");
    }
    if (t->got != t->source->bytes) {
        return ctl_fail(
            "%s: %s has the wrong size (%llu bytes; the catalogue says %llu); nothing was kept",
            t->name, t->source->url, (unsigned long long)t->got,
            (unsigned long long)t->source->bytes);
    }
    end_hash(&t->hash, hex);
    if (strcmp(hex, t->source->sha256) != 0) {
        return ctl_fail(
            "%s: %s has the wrong SHA-256 (%s; the catalogue says %s); nothing was kept", t->name,
            t->source->url, hex, t->source->sha256);
    }
    return CTL_DONE;
}

bool ctl_is_source(const struct ctl_source *source, int folder, const char *name)
{
    base_autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned char buffer[16384];
    char hex[HEX_BYTES];
    crypto_hash_sha256_state state;
    uint64_t got = 0;
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || sodium_init() < 0) {
        return false;
    }
    crypto_hash_sha256_init(&state);
    while (got <= source->bytes && (n = read(fd, buffer, sizeof(buffer))) > 0) {
        crypto_hash_sha256_update(&state, buffer, (size_t)n);
        got += (uint64_t)n;
    }
    end_hash(&state, hex);
    return got == source->bytes && strcmp(hex, source->sha256) == 0;
}

int ctl_download(const struct ctl_source *source, const char *name, int fd)
{
    struct transfer t = {.source = source, .name = name, .to = fd};
    int error, rc, status = 0;

    if (ended) {
        return CTL_FAILED;
    }
    error = sodium_init() < 0 ? ENOSYS : start_curl(&t);
    if (error) {
        return ctl_fail("cannot run curl, which fetches files: %s; install the package curl",
                        strerror(error));
    }
    crypto_hash_sha256_init(&t.hash);
    rc = take_all(&t);
    show(&t, true);
    if (rc) {
        kill(t.curl, SIGTERM);
    }
    close(t.from);
    while (waitpid(t.curl, &status, 0) < 0 && errno == EINTR) {
    }
    rc = rc ? rc : judge(&t, status);
    close(t.words);
    return rc;
}
