/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of boards: pairs, public keys, their fingerprints. */
#include <sodium.h>

#include "base/base.h"
#include "ipc/boards/board_files.h"
#include "ipc/boards/known_boards.h"

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

bool brd_is_public_key(const uint8_t key[BRD_KEY_BYTES])
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
    json_t *root;
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
    json_decref(root);
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
