/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/known_boards.h"

#include <arpa/inet.h>
#include <pwd.h>
#include <sodium.h>
#include <sys/file.h>

#include "base/base.h"
#include "base/json_text.h"
#include "base/whole_file.h"

#define USER "piped-link"

int brd_open(const char *folder, bool make)
{
    const struct passwd *user;
    int fd;

    if (make && mkdir(folder, 0750) == 0) {
        user = geteuid() == 0 ? getpwnam(USER) : NULL;
        if (user && chown(folder, user->pw_uid, user->pw_gid) < 0) {
            return -errno;
        }
    } else if (make && errno != EEXIST) {
        return -errno;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR) {
            int error = -errno;

            close(fd);
            return error;
        }
    }
    return fd;
}

/* ---- a small file of JSON, read and replaced as a whole ---- */

int brd_file_read(int folder, const char *name, bool secret, json_t **ret)
{
    const struct whole_file f = {.folder = folder,
                                 .path = name,
                                 .bytes_max = BRD_FILE_BYTES_MAX,
                                 .refused = secret ? S_IRWXG | S_IRWXO : 0,
                                 .no_link = true};
    base_autofree char *text = NULL;
    size_t bytes = 0;
    json_auto_t *root = NULL;
    int r = whole_file_read(&f, &text, &bytes);

    if (r) {
        return r == WHOLE_FILE_E_OPEN ? BRD_E_OPEN : r > 0 || r == -ELOOP ? BRD_E_FILE : r;
    }
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    explicit_bzero(text, bytes);
    if (!json_is_object(root) || !json_is_integer(json_object_get(root, "version"))) {
        return BRD_E_FILE;
    }
    if (json_integer_value(json_object_get(root, "version")) != BRD_VERSION) {
        return BRD_E_VERSION;
    }
    *ret = base_take(root);
    return 0;
}

int brd_file_write(int folder, const char *name, unsigned mode, json_t *root)
{
    struct atomic_file f = {
        .folder = folder, .path = name, .mode = mode, .inherited = true, .synced = true};
    char *text = NULL;
    int rc = -ENOMEM;

    if (root && json_object_set_new(root, "version", json_integer(BRD_VERSION)) == 0) {
        text = json_text(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    }
    json_decref(root);
    if (text) {
        rc = atomic_file_write(&f, text, strlen(text));
        explicit_bzero(text, strlen(text));
        free(text);
    }
    return rc;
}

/* ---- keys: pairs, public keys, their fingerprints ---- */

_Static_assert(BRD_KEY_BYTES == crypto_box_PUBLICKEYBYTES,
               "CurveZMQ's keys are those of crypto_box");
_Static_assert(BRD_KEY_BYTES == crypto_box_SECRETKEYBYTES,
               "CurveZMQ's keys are those of crypto_box");

void brd_forget(struct brd_keys *keys)
{
    sodium_memzero(keys, sizeof(*keys));
}

void brd_key_text(const uint8_t key[BRD_KEY_BYTES], char ret[BRD_KEY_TEXT_BYTES])
{
    sodium_bin2hex(ret, BRD_KEY_TEXT_BYTES, key, BRD_KEY_BYTES);
}

void brd_fingerprint(const uint8_t key[BRD_KEY_BYTES], char ret[BRD_FINGERPRINT_BYTES])
{
    uint8_t hash[crypto_generichash_BYTES_MIN];

    crypto_generichash(hash, sizeof(hash), key, BRD_KEY_BYTES, NULL, 0);
    sodium_bin2hex(ret, BRD_FINGERPRINT_BYTES, hash, (BRD_FINGERPRINT_BYTES - 1) / 2);
}

bool brd_key_from_text(const char *text, uint8_t ret[BRD_KEY_BYTES])
{
    return strnlen(text, BRD_KEY_TEXT_BYTES) == BRD_KEY_TEXT_BYTES - 1 &&
           sodium_hex2bin(ret, BRD_KEY_BYTES, text, BRD_KEY_TEXT_BYTES - 1, NULL, NULL, NULL) == 0;
}

/* False for the few keys that would make everything readable. */
static bool is_public_key(const uint8_t key[BRD_KEY_BYTES])
{
    static const uint8_t any[crypto_scalarmult_SCALARBYTES] = {1, 2, 3};
    uint8_t product[crypto_scalarmult_BYTES];

    /* Fails for points of low order: with such a key everybody knows the shared secret. The top bit
     * is ignored by the curve, so keys that differ only there would be one key twice. */
    return (key[BRD_KEY_BYTES - 1] & 0x80) == 0 && crypto_scalarmult(product, any, key) == 0;
}

static bool is_pair(const struct brd_keys *keys)
{
    uint8_t product[crypto_scalarmult_BYTES];

    return crypto_scalarmult_base(product, keys->secret_key) == 0 &&
           sodium_memcmp(product, keys->public_key, sizeof(product)) == 0;
}

int brd_keys_read(int folder, struct brd_keys *ret)
{
    const char *public_key, *secret_key;
    struct brd_keys keys;
    json_auto_t *root = NULL;
    int rc = brd_file_read(folder, BRD_KEY_FILE, true, &root);

    if (rc) {
        return rc;
    }
    public_key = json_string_value(json_object_get(root, "public_key"));
    secret_key = json_string_value(json_object_get(root, "secret_key"));
    rc = public_key && secret_key && brd_key_from_text(public_key, keys.public_key) &&
                 brd_key_from_text(secret_key, keys.secret_key) && is_pair(&keys)
             ? 0
             : BRD_E_FILE;
    if (rc == 0) {
        *ret = keys;
    }
    brd_forget(&keys);
    return rc;
}

int brd_keys_make(int folder, struct brd_keys *ret)
{
    char public_key[BRD_KEY_TEXT_BYTES], secret_key[BRD_KEY_TEXT_BYTES];
    struct brd_keys keys;
    int rc;

    if (sodium_init() < 0) {
        return -EIO;
    }
    crypto_box_keypair(keys.public_key, keys.secret_key);
    brd_key_text(keys.public_key, public_key);
    brd_key_text(keys.secret_key, secret_key);
    rc =
        brd_file_write(folder, BRD_KEY_FILE, 0600,
                       json_pack("{s:s, s:s}", "public_key", public_key, "secret_key", secret_key));
    sodium_memzero(secret_key, sizeof(secret_key));
    if (rc == 0) {
        *ret = keys;
    }
    brd_forget(&keys);
    return rc;
}

/* ---- the list of boards that may take part ---- */

const char *brd_sentence(int outcome)
{
    static const char *const sentences[BRD_E_OUTCOMES] = {
        [BRD_E_NAME] =
            "a board's name has at most 31 letters, digits, '-' and '_', and begins with a "
            "letter or digit",
        [BRD_E_ADDRESS] =
            "the address is not the IP address of one machine, with or without a port, "
            "such as 10.0.0.2, 10.0.0.2:8474 or [fd00::2]:8474",
        [BRD_E_KEY] =
            "that is not a public key; pipectl board key on the other board prints it: 64 "
            "hex digits",
        [BRD_E_OWN_KEY] =
            "that is this board's own key; take the one that pipectl board key prints "
            "on the other board",
        [BRD_E_SECRET_KEY] = "that is this board's secret key, which no other board may know; make "
                             "new keys with pipectl board key --replace",
        [BRD_E_SAME_NAME] = "another board has this name; remove it first",
        [BRD_E_SAME_ADDRESS] = "another board has this address",
        [BRD_E_SAME_KEY] = "another board has this key",
        [BRD_E_TOO_MANY] = "the list is full: 15 other boards",
        [BRD_E_NO_BOARD] = "no board of this name is on the list",
        [BRD_E_FILE] = "the file is broken",
        [BRD_E_VERSION] = "the file is of another version of piped",
        [BRD_E_OPEN] = "others than its owner may read the keys; make new ones with pipectl board "
                       "key --replace",
    };

    return outcome > 0 && outcome < BRD_E_OUTCOMES ? sentences[outcome] : "";
}

static bool is_name(const char *name)
{
    size_t n = strnlen(name, BRD_NAME_BYTES);

    return n > 0 && n < BRD_NAME_BYTES && name[0] != '-' && name[0] != '_' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

/* @ret: 1 to 65535. */
static bool is_port(const char *text, unsigned *ret)
{
    size_t n = strnlen(text, 6);
    unsigned long port;

    if (n == 0 || n > 5 || strspn(text, "0123456789") != n) {
        return false;
    }
    port = strtoul(text, NULL, 10);
    *ret = (unsigned)port;
    return port > 0 && port <= 65535;
}

static bool is_one_machine(const uint8_t *ip, bool six)
{
    static const uint8_t zeros[16];

    if (six) {
        return memcmp(ip, zeros, 16) != 0 && ip[0] != 0xff;
    }
    return ip[0] != 0 && ip[0] < 224; /* not multicast or broadcast */
}

int brd_address(const char *text, bool listen, char ret[BRD_ADDRESS_BYTES])
{
    char host[BRD_ADDRESS_BYTES], shown[INET6_ADDRSTRLEN];
    bool bracket = text[0] == '[', six;
    const char *end = bracket ? strchr(text, ']') : NULL, *port = NULL;
    unsigned number = BRD_PORT;
    uint8_t ip[16] = {0};
    size_t n;

    if (strnlen(text, BRD_ADDRESS_BYTES) >= BRD_ADDRESS_BYTES || (bracket && !end)) {
        return BRD_E_ADDRESS;
    }
    if (bracket) {
        text++;
        port = end[1] == ':' ? end + 2 : NULL;
        if (!port && end[1] != 0) {
            return BRD_E_ADDRESS;
        }
    } else {
        end = strchr(text, ':');
        port = end && !strchr(end + 1, ':') ? end + 1 : NULL; /* two: IPv6 without brackets */
        end = port ? end : text + strlen(text);
    }
    n = (size_t)(end - text);
    memcpy(host, text, n);
    host[n] = 0;
    six = inet_pton(AF_INET6, host, ip) == 1;
    if ((port && !is_port(port, &number)) || (bracket && !six) ||
        (!six && inet_pton(AF_INET, host, ip) != 1) || (!listen && !is_one_machine(ip, six))) {
        return BRD_E_ADDRESS;
    }
    inet_ntop(six ? AF_INET6 : AF_INET, ip, shown, sizeof(shown));
    snprintf(ret, BRD_ADDRESS_BYTES, six ? "[%s]:%u" : "%s:%u", shown, number);
    return 0;
}

int brd_list_add(struct brd_list *list, const char *name, const char *address, const char *key,
                 const struct brd_keys *own)
{
    struct brd_board b = {{0}};

    if (!is_name(name)) {
        return BRD_E_NAME;
    }
    strcpy(b.name, name);
    if (brd_address(address, false, b.address) != 0) {
        return BRD_E_ADDRESS;
    }
    if (!brd_key_from_text(key, b.key)) {
        return BRD_E_KEY;
    }
    if (own && memcmp(b.key, own->secret_key, BRD_KEY_BYTES) == 0) {
        return BRD_E_SECRET_KEY;
    }
    if (own && memcmp(b.key, own->public_key, BRD_KEY_BYTES) == 0) {
        return BRD_E_OWN_KEY;
    }
    if (!is_public_key(b.key)) {
        return BRD_E_KEY;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct brd_board *other = &list->board[i];

        if (strcmp(other->name, b.name) == 0) {
            return BRD_E_SAME_NAME;
        }
        if (strcmp(other->address, b.address) == 0) {
            return BRD_E_SAME_ADDRESS;
        }
        if (memcmp(other->key, b.key, BRD_KEY_BYTES) == 0) {
            return BRD_E_SAME_KEY;
        }
    }
    if (list->count == BRD_MAX) {
        return BRD_E_TOO_MANY;
    }
    list->board[list->count++] = b;
    return 0;
}

int brd_list_remove(struct brd_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->board[i].name, name) == 0) {
            list->count--;
            memmove(&list->board[i], &list->board[i + 1],
                    (list->count - i) * sizeof(list->board[0]));
            return 0;
        }
    }
    return BRD_E_NO_BOARD;
}

int brd_list_read(int folder, struct brd_list *ret)
{
    struct brd_list list = {0};
    json_auto_t *root = NULL;
    json_t *boards;
    int rc = brd_file_read(folder, BRD_LIST_FILE, false, &root);

    if (rc == -ENOENT) {
        *ret = list;
        return 0;
    }
    if (rc) {
        return rc;
    }
    boards = json_object_get(root, "boards");
    rc = json_is_array(boards) ? 0 : BRD_E_FILE;
    json_text_each(boards, i, b) {
        const char *name = json_string_value(json_object_get(b, "name"));
        const char *address = json_string_value(json_object_get(b, "address"));
        const char *key = json_string_value(json_object_get(b, "public_key"));

        if (rc == 0) {
            rc =
                name && address && key ? brd_list_add(&list, name, address, key, NULL) : BRD_E_FILE;
        }
    }
    if (rc == 0) {
        *ret = list;
    }
    return rc;
}

int brd_list_write(int folder, const struct brd_list *list)
{
    json_t *boards = json_array();

    for (size_t i = 0; i < list->count; i++) {
        char key[BRD_KEY_TEXT_BYTES];

        brd_key_text(list->board[i].key, key);
        json_array_append_new(boards,
                              json_pack("{s:s, s:s, s:s}", "name", list->board[i].name, "address",
                                        list->board[i].address, "public_key", key));
    }
    if (json_array_size(boards) != list->count) {
        json_decref(boards);
        return -ENOMEM;
    }
    return brd_file_write(folder, BRD_LIST_FILE, 0640, json_pack("{s:o}", "boards", boards));
}
