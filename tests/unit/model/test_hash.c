/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a model's file. */
#include <fcntl.h>

#include "base/base.h"
#include "base/leaves/leaves.h"
#include "tests/unit/model/load_files.h"

TEST(the_hash_is_blake2b)
{
    /* RFC 7693's function with 32 bytes of output; the values are those of Python's hashlib */
    static const char *const abc =
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319";
    static const char *const none =
        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8";
    unsigned char data[700];
    char whole[65], parts[65];
    struct mdl_hash h;

    mdl_hash_init(&h);
    mdl_hash_hex(&h, whole);
    T_STR(whole, none);
    mdl_hash_init(&h);
    mdl_hash_update(&h, "abc", 3);
    mdl_hash_hex(&h, whole);
    T_STR(whole, abc);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)(i * 7);
    }
    for (size_t n = 0; n <= sizeof(data); n++) { /* any pieces give the same */
        mdl_hash_init(&h);
        mdl_hash_update(&h, data, n);
        mdl_hash_hex(&h, whole);
        mdl_hash_init(&h);
        for (size_t at = 0, step; at < n; at += step) {
            step = base_min((size_t)t_range(1, 200), n - at);
            mdl_hash_update(&h, data + at, step);
        }
        mdl_hash_hex(&h, parts);
        T_STR(parts, whole);
    }
}

TEST(the_hash_of_a_file_is_a_tree_of_blake2b)
{
    /* values of Python's hashlib, see mdl_hash_file() */
    static const struct {
        size_t bytes;
        const char *hex;
    } wanted[] = {
        {0, "97bc9330d3666ce19ddc7ac14182338bba63e2a37ec2462e1863e71444d1aefa"},
        {3, "b65446895f1bcedc06fe1c908a9844ea7559afa666e4ecf3716324732ae494bf"},
        {MDL_HASH_LEAF_BYTES, "4a2925f20653e383c67f0b03f31d9059ff86159596ff451e745954aaf8b58654"},
        {MDL_HASH_LEAF_BYTES + 1,
         "bd61b5acb69b182a5261dd101a82e198d202215c53ce219368c2dba7d705a457"},
        {5 * MDL_HASH_LEAF_BYTES,
         "c5fb6e0013d7553b3f3b9791df34b30e48f6fff7318ade76d7689282e5276fb9"},
        {9 * MDL_HASH_LEAF_BYTES + 12345,
         "a579bcee00c0d8919bbfcf836a9c2b29b33833be3142cfb5cd7fc3cb3c7f735f"},
    };
    size_t most = wanted[base_array_count(wanted) - 1].bytes;
    unsigned char *data = malloc(most);
    char hex[65];
    int fd;

    for (size_t i = 0; i < most; i++) {
        data[i] = (unsigned char)(i * 7 + (i >> 8));
    }
    fd = open(load_put("hashed", data, most), O_RDONLY | O_CLOEXEC);
    T_TRUE(fd >= 0);
    for (size_t i = 0; i < base_array_count(wanted); i++) {
        for (size_t threads = 0; threads < 4; threads++) {
            T_EQ(mdl_hash_file(fd, wanted[i].bytes, threads, hex), 0);
            T_STR(hex, wanted[i].hex);
        }
    }
    T_EQ(mdl_hash_file(fd, most + 1, 2, hex), -EBADMSG);
    close(fd);
    T_EQ(mdl_hash_file(fd, most, 2, hex), -EBADF);
    free(data);
}

LOAD_MAIN()
