/* SPDX-License-Identifier: Apache-2.0 */
/* A model's file as leaves: lists as data, checks, and loads of files that lack what a segment does
 * not need. */
#include <fcntl.h>

#include "base/leaves/leaves.h"
#include "model/model.h"
#include "model/segment/segment.h"
#include "tests/harness.h"
#include "tests/unit/model/two_products.h"

static char error[MDL_ERROR_MAX];
static char folder[] = "/tmp/piped-leaves-XXXXXX";
static char path[256];

static void put(const void *data, size_t bytes)
{
    FILE *f;

    snprintf(path, sizeof(path), "%s/two.onnx", folder);
    unlink(path);
    f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        abort();
    }
}

static void of_file(struct mdl_leaves *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || mdl_leaves_of_file(fd, (size_t)lseek(fd, 0, SEEK_END), 2, ret) < 0) {
        abort();
    }
    close(fd);
}

TEST(lists_as_data)
{
    struct pb file = two_products();
    struct mdl_leaves l, back;
    unsigned char data[8 + 32 * 16];
    char hash[65];
    struct mdl_model *m = NULL;

    put(file.data, file.bytes);
    of_file(&l);
    T_EQ(l.count, 9u);
    T_EQ(mdl_leaf_bytes(&l, 8), file.bytes - (8u << 20));
    T_EQ(mdl_leaf_bytes(&l, 9), 0u);
    T_TRUE(mdl_leaf_ok(&l, 3, file.data + (3u << 20), 1u << 20));
    T_TRUE(!mdl_leaf_ok(&l, 3, file.data + (3u << 20), (1u << 20) - 1));
    T_TRUE(!mdl_leaf_ok(&l, 9, file.data, 0));
    file.data[(3u << 20) + 77] ^= 4;
    T_TRUE(!mdl_leaf_ok(&l, 3, file.data + (3u << 20), 1u << 20));
    T_EQ(mdl_load(path, NULL, error, &m), 0);
    mdl_leaves_hash(&l, hash);
    T_STR(hash, m->hash);
    mdl_free(m);
    mdl_leaves_write(&l, data);
    T_EQ(mdl_leaves_read(data, mdl_leaves_bytes(&l), &back), 0);
    mdl_leaves_hash(&back, hash);
    T_TRUE(!back.present[0] && back.count == l.count && back.file_bytes == l.file_bytes);
    mdl_leaves_deinit(&back);
    /* hostile lists */
    for (size_t n = 0; n < mdl_leaves_bytes(&l); n++) {
        T_EQ(mdl_leaves_read(data, n, &back), -EBADMSG);
    }
    memset(data, 0xff, 8);
    T_EQ(mdl_leaves_read(data, mdl_leaves_bytes(&l), &back), -E2BIG);
    memset(data, 0, 8);
    T_EQ(mdl_leaves_read(data, mdl_leaves_bytes(&l), &back), -EBADMSG);
    mdl_leaves_deinit(&l);
    pb_free(&file);
}

TEST(list_files)
{
    struct pb file = two_products();
    struct mdl_leaves l, back;
    char name[300];

    put(file.data, file.bytes);
    of_file(&l);
    l.present[2] = false;
    T_EQ(mdl_leaves_file_read(path, &back), -ENOENT);
    T_EQ(mdl_leaves_file_write(path, &l), 0);
    T_EQ(mdl_leaves_file_read(path, &back), 0);
    T_TRUE(back.present[1] && !back.present[2] && back.present[8]);
    T_EQ(memcmp(back.hashes, l.hashes, l.count * MDL_HASH_BYTES), 0);
    mdl_leaves_deinit(&back);
    snprintf(name, sizeof(name), "%s.leaves", path);
    for (size_t n = 0; n < mdl_leaves_bytes(&l) + 2; n += 13) {
        T_EQ(truncate(name, (off_t)n), 0);
        T_EQ(mdl_leaves_file_read(path, &back), -EBADMSG);
    }
    unlink(name);
    mdl_leaves_deinit(&l);
    pb_free(&file);
}

/* What is not needed is filled with other bytes: the segment and its hash are the same. */
TEST(a_segment_from_its_leaves)
{
    struct pb file = two_products(), part;
    struct mdl_model *whole = NULL, *m = NULL, *s = NULL;
    struct mdl_load_options o = {.name = "two"};
    struct mdl_leaves l;
    bool needed[9];
    float want[2], out[1024];

    put(file.data, file.bytes);
    of_file(&l);
    o.leaves = &l;
    T_EQ(mdl_load(path, NULL, error, &whole), 0);
    T_EQ(mdl_segment_leaves(whole, 0, 0, needed, 8), -EINVAL);
    T_EQ(mdl_segment_leaves(whole, 0, 2, needed, 9), -EINVAL);
    for (size_t unit = 0; unit < 2; unit++) {
        size_t spared = 0;

        T_EQ(mdl_segment(whole, unit, unit, NULL, error, &s), 0);
        want[unit] = run_ones(s, out);
        mdl_free(s);
        T_EQ(mdl_segment_leaves(whole, unit, unit, needed, 9), 0);
        part = (struct pb){0};
        pb_raw(&part, file.data, file.bytes);
        for (size_t i = 0; i < 9; i++) {
            l.present[i] = needed[i];
            spared += !needed[i];
            if (!needed[i]) {
                memset(part.data + (i << 20), 0xa5, mdl_leaf_bytes(&l, i));
            }
        }
        T_EQ(spared, 3u); /* of 4 MiB, the ends are shared with structure */
        put(part.data, part.bytes);
        T_EQ(mdl_load(path, &o, error, &m), 0);
        T_STR(m->hash, whole->hash);
        T_EQ(mdl_segment(m, 1 - unit, 1 - unit, NULL, error, &s), -EBADMSG);
        T_TRUE(strstr(error, "is not there") != NULL);
        T_EQ(mdl_segment(m, unit, unit, NULL, error, &s), 0);
        T_NEAR(run_ones(s, out), want[unit], 0);
        T_TRUE(want[unit] != 0);
        mdl_free(s);
        m = mdl_free(m);
        part.data[5] ^= 1; /* structure */
        put(part.data, part.bytes);
        T_TRUE(mdl_load(path, &o, error, &m) < 0);
        part.data[5] ^= 1;
        part.data[(needed[1] ? 2u << 20 : 6u << 20)] ^= 1; /* a weight that is there */
        put(part.data, part.bytes);
        T_EQ(mdl_load(path, &o, error, &m), -EBADMSG);
        T_TRUE(strstr(error, "leaf list says") != NULL);
        pb_free(&part);
    }
    mdl_free(whole);
    mdl_leaves_deinit(&l);
    pb_free(&file);
}

static void clean(void)
{
    unlink(path);
    rmdir(folder);
}

__attribute__((constructor)) static void make_folder(void)
{
    if (!mkdtemp(folder)) {
        abort();
    }
    atexit(clean);
}

TEST_MAIN()
