/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/known_boards.h - the files that pipectl and piped-link share: this board's keys, the
 * list of the others, and what piped-link reports of its links
 *
 * board.key has the pair of keys, mode 0600; boards.json has who may connect. Both are JSON with
 * a version, and replaced as a whole: what reads them sees the previous or the new one. They
 * belong to the folder's owner, whoever writes them. pipectl writes, piped-link reads.
 *
 * links.json in the runtime folder is the other way round: piped-link replaces it at least every
 * BRD_REPORT_EVERY_S, and removes it when it ends; pipectl reads it.
 *
 * No function here returns or prints a part of a key, but those that are named after it. Nothing
 * of a broken file is shown, because it could be a key.
 *
 * Threads: any, one at a time for each folder; brd_open() waits for other processes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRD_FOLDER "/var/lib/piped-link"
#define BRD_KEY_FILE "board.key"
#define BRD_LIST_FILE "boards.json"
#define BRD_KEY_BYTES 32u
#define BRD_KEY_TEXT_BYTES 65u /* hex digits and NUL */
#define BRD_NAME_BYTES 32u     /* with NUL */
#define BRD_ADDRESS_BYTES 64u  /* IP:PORT, IPv6 in brackets, NUL */
#define BRD_FINGERPRINT_BYTES 17u
#define BRD_MAX 15u    /* others: with this one, what a transport takes */
#define BRD_PORT 8474u /* if an address has none */
#define BRD_FILE_BYTES_MAX (64u << 10)
#define BRD_VERSION 1
#define BRD_RUNTIME_FOLDER "/run/piped-link"
#define BRD_REPORT_FILE "links.json"
#define BRD_REPORT_EVERY_S 2
#define BRD_REPORT_STALE_S 10 /* older: who wrote it hangs, or was killed */

struct brd_keys {
    uint8_t public_key[BRD_KEY_BYTES], secret_key[BRD_KEY_BYTES];
};
struct brd_board {
    char name[BRD_NAME_BYTES], address[BRD_ADDRESS_BYTES];
    uint8_t key[BRD_KEY_BYTES]; /* public */
};
struct brd_list {
    size_t count;
    struct brd_board board[BRD_MAX];
};

/* A link to another board. */
struct brd_link {
    char name[BRD_NAME_BYTES];
    bool up;
    double for_s;       /* how long it has been up, or not */
    uint64_t losses;    /* how often it was lost */
    uint64_t frames;    /* of that board that were computed here */
    bool measured;      /* the next two are known */
    double message_us;  /* one way, without its bytes */
    double kilobyte_us; /* for each 1000 bytes more */
};
struct brd_report {
    double written_s; /* on the clock of the machine's start; set by brd_report_write() */
    double age_s;     /* read: how long ago it was written */
    uint64_t refused; /* connections: not on the list, a wrong key, another protocol */
    size_t count;
    struct brd_link link[BRD_MAX];
};

/* Positive outcomes; brd_sentence() has them in words. */
enum brd_outcome {
    BRD_E_NAME = 1, /* letters, digits, '-' and '_', at most 31, a letter or digit first */
    BRD_E_ADDRESS,  /* not IP or IP:PORT of one machine */
    BRD_E_KEY,      /* not 64 hex digits, or no public key at all */
    BRD_E_OWN_KEY,
    BRD_E_SECRET_KEY,
    BRD_E_SAME_NAME,
    BRD_E_SAME_ADDRESS,
    BRD_E_SAME_KEY,
    BRD_E_TOO_MANY,
    BRD_E_NO_BOARD, /* none of that name */
    BRD_E_FILE,     /* a file is too large, broken, or not a file */
    BRD_E_VERSION,  /* a file of another version */
    BRD_E_OPEN,     /* others than its owner may read the keys */
    BRD_E_OUTCOMES
};
const char *brd_sentence(int outcome);

/** brd_open() - opens and locks the state folder. @make: makes it if it is missing, for the user
 * piped-link if there is one. Return: a descriptor, close-on-exec, which keeps the lock; -errno. */
int brd_open(const char *folder, bool make);

/** brd_keys_read() - Return: 0; BRD_E_FILE, _VERSION, _OPEN; -ENOENT: none yet; -errno. Checks that
 * the keys are a pair. The caller clears @ret with brd_forget(). */
int brd_keys_read(int folder, struct brd_keys *ret);
/** brd_keys_make() - makes and writes a pair, over the previous one. Return: 0 or -errno. */
int brd_keys_make(int folder, struct brd_keys *ret);
void brd_forget(struct brd_keys *keys);

/** brd_list_read() - Return: 0, also without a file; BRD_E_FILE, _VERSION; what brd_list_add() says
 * of an entry; -errno. */
int brd_list_read(int folder, struct brd_list *ret);
int brd_list_write(int folder, const struct brd_list *list);
/**
 * brd_list_add() - adds a board
 * @key: its public key as text      @own: this board's; NULL: none yet
 * Return: 0 or an outcome, which leaves @list unchanged.
 */
int brd_list_add(struct brd_list *list, const char *name, const char *address, const char *key,
                 const struct brd_keys *own);
int brd_list_remove(struct brd_list *list, const char *name);

/** brd_address() - reads IP, IP:PORT or [IPv6]:PORT. @listen: may be all addresses. @ret: with its
 * port. Return: 0; BRD_E_ADDRESS. */
int brd_address(const char *text, bool listen, char ret[BRD_ADDRESS_BYTES]);
void brd_key_text(const uint8_t key[BRD_KEY_BYTES], char ret[BRD_KEY_TEXT_BYTES]);
/** brd_key_from_text() - Return: false: @text is not 64 hex digits. */
bool brd_key_from_text(const char *text, uint8_t ret[BRD_KEY_BYTES]);
/** brd_fingerprint() - 16 hex digits of the key's hash, to compare by eye. */
void brd_fingerprint(const uint8_t key[BRD_KEY_BYTES], char ret[BRD_FINGERPRINT_BYTES]);

/** brd_is_shown() - Return: printable ASCII, which may go to terminals and logs. */
static inline bool brd_is_shown(const char *text)
{
    while (*text >= ' ' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

/* a small file of JSON in a folder, read and replaced as a whole */
/** brd_file_read() - @ret: new reference. Return: 0; BRD_E_FILE, _VERSION; BRD_E_OPEN: @secret, and
 * others than its owner may read it; -errno. */
int brd_file_read(int folder, const char *name, bool secret, json_t **ret);
/** brd_file_write() - adds the version and writes, owned by the folder's owner; synced. @root:
 * reference taken. Return: 0 or -errno, which leaves the previous file unchanged. */
int brd_file_write(int folder, const char *name, unsigned mode, json_t *root);

/* link_report.c */
/** brd_report_write() - Return: 0 or -errno. */
int brd_report_write(const char *folder, struct brd_report *report);
/** brd_report_read() - Return: 0; -ENOENT: piped-link does not run; BRD_E_FILE, _VERSION;
 * -errno. */
int brd_report_read(const char *folder, struct brd_report *ret);
/** brd_report_remove() - the writer ends. @folder: NULL: does nothing. */
void brd_report_remove(const char *folder);
/** brd_report_find() - Return: the link to board @name, or NULL. */
const struct brd_link *brd_report_find(const struct brd_report *report, const char *name);
