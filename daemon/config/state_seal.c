/* SPDX-License-Identifier: Apache-2.0 */
/* The last member of a state file's JSON object is its seal, with the BLAKE2b-256 of every byte
 * before that member, as hex. The file is JSON with and without it. A seal finds damage; it does
 * not prove who wrote the file. */
#include "daemon/config/state_file.h"

#include "base/base.h"
#include "base/json_text.h"
#include "base/leaves/hash.h"

#define BEFORE ",\n\"" DMN_SEAL_KEY "\":\""
#define AFTER "\"}\n"
#define HEX_BYTES (2 * MDL_HASH_BYTES)
#define SEAL_BYTES (sizeof(BEFORE) - 1 + HEX_BYTES + sizeof(AFTER) - 1)

static void make_seal(const char *text, size_t bytes, char ret[SEAL_BYTES + 1])
{
    struct mdl_hash h;
    char hex[HEX_BYTES + 1];

    mdl_hash_init(&h);
    mdl_hash_update(&h, text, bytes);
    mdl_hash_hex(&h, hex);
    snprintf(ret, SEAL_BYTES + 1, BEFORE "%s" AFTER, hex);
}

char *dmn_seal_json(const json_t *root, size_t flags)
{
    base_autofree char *text = json_text(root, flags);
    char seal[SEAL_BYTES + 1], *whole = NULL;
    size_t bytes = text ? strlen(text) : 0;

    if (bytes < 2) {
        return NULL;
    }
    bytes--; /* the brace */
    while (bytes > 0 && strchr(" \n", text[bytes - 1])) {
        bytes--;
    }
    make_seal(text, bytes, seal);
    return asprintf(&whole, "%.*s%s", (int)bytes, text, seal) < 0 ? NULL : whole;
}

const char *dmn_seal_check(const char *text, size_t bytes)
{
    char seal[SEAL_BYTES + 1];
    size_t before = bytes - SEAL_BYTES;

    if (bytes < SEAL_BYTES || memcmp(text + before, BEFORE, sizeof(BEFORE) - 1) != 0 ||
        memcmp(text + bytes - (sizeof(AFTER) - 1), AFTER, sizeof(AFTER) - 1) != 0) {
        return "it does not end in a checksum";
    }
    make_seal(text, before, seal);
    return memcmp(text + before, seal, SEAL_BYTES) == 0 ? NULL : "its checksum is wrong";
}
