/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in files beside the model's file ("external data"): what is read, and what is refused. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/leaves/leaves.h"
#include "model/segment/segment.h"
#include "tests/unit/model/load_files.h"

#define FLOATS 2048u

static float weights[FLOATS];

static void fill_weights(void)
{
    for (size_t i = 0; i < FLOATS; i++) {
        weights[i] = (float)(i % 97) * 0.125f - 3.0f;
    }
}

static void put_entry(struct pb *t, const char *key, const char *value)
{
    struct pb e = {0};

    pb_text(&e, 1, key);
    pb_text(&e, 2, value);
    pb_sub(t, 13, e);
}

/* A tensor of @type whose data is elsewhere; @offset, @length: NULL: not given. */
static struct pb outside(const char *name, int type, const int64_t *dims, size_t rank,
                         const char *location, const char *offset, const char *length)
{
    struct pb t = pb_tensor(name, type, dims, rank);

    put_entry(&t, "location", location);
    if (offset) {
        put_entry(&t, "offset", offset);
    }
    if (length) {
        put_entry(&t, "length", length);
    }
    pb_int(&t, 14, 1);
    return t;
}

/* y = x[1][32] times w[32][32], and added b[32]. */
static struct pb product(struct pb w, struct pb b)
{
    static const int64_t x[] = {1, 32};
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("MatMul", "product", "x", "w", "p"));
    pb_sub(&g, 1, pb_node("Mul", "mul", "p", "b", "m"));
    pb_sub(&g, 1, pb_node("Tanh", "tanh", "m", NULL, "y"));
    pb_sub(&g, 5, w);
    pb_sub(&g, 5, b);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    return pb_model(g, 10, 18);
}

static struct pb product_of(const char *location, const char *offset, const char *length)
{
    static const int64_t w[] = {32, 32}, b[] = {32};

    return product(outside("w", 1, w, 2, location, offset, length),
                   outside("b", 1, b, 1, location, "100", "128"));
}

static int load_keep(const char *path, struct mdl_model **ret)
{
    int r = mdl_load(path, NULL, load_error, ret);

    if (r < 0) {
        printf("  %d: %s\n", r, load_error);
    }
    return r;
}

static struct mdl_model *load_good(const char *name, struct pb model)
{
    struct mdl_model *m = NULL;

    if (load_keep(load_put(name, model.data, model.bytes), &m) < 0) {
        abort();
    }
    pb_free(&model);
    return m;
}

/* Return: the bytes of the product's weights. */
static const unsigned char *product_weights(const struct mdl_model *m)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (mdl_op_is((int)m->ops[i].kind, MDL_OP_HEAVY)) {
            return m->storages[m->tensors[m->ops[i].in[1]].storage].data;
        }
    }
    return NULL;
}

/* Offsets that are no multiple of a page or of an element, and overlaps, are all the same. */
TEST(weights_are_read_where_they_are)
{
    static const char *const offsets[] = {NULL, "0", "4", "101", "4092"};
    static const size_t at[] = {0, 0, 4, 101, 4092};

    load_put("w.data", weights, sizeof(weights));
    for (size_t i = 0; i < base_array_count(offsets); i++) {
        struct mdl_model *m = load_good("m.onnx", product_of("w.data", offsets[i], "4096"));

        T_TRUE(memcmp(product_weights(m), (const char *)weights + at[i], 4096) == 0);
        mdl_drop_weights(m); /* pages of the file: they are read again */
        mdl_drop_op_weights(m, 0);
        T_TRUE(memcmp(product_weights(m), (const char *)weights + at[i], 4096) == 0);
        T_EQ(m->data_file_count, 1);
        T_STR(m->data_files[0].path, load_path("w.data"));
        T_EQ(m->data_files[0].bytes, sizeof(weights));
        mdl_free(m);
    }
}

TEST(a_length_may_be_left_out_and_a_folder_named)
{
    struct mdl_model *m;

    mkdir(load_path("sub"), 0700);
    load_put("sub/w.data", weights, sizeof(weights));
    m = load_good("m.onnx", product_of("sub/w.data", "8", NULL));
    T_TRUE(memcmp(product_weights(m), (const char *)weights + 8, 4096) == 0);
    mdl_free(m);
    m = load_good("m.onnx", product_of("./sub/w.data", "8", NULL));
    mdl_free(m);
}

TEST(sixteen_bit_weights_outside)
{
    static const int64_t w[] = {32, 32}, b[] = {32};
    static uint16_t half[1024 + 32];
    struct mdl_model *m;
    float f;

    for (size_t i = 0; i < base_array_count(half); i++) {
        half[i] = (uint16_t)(0x3c00 + i); /* 1 + i / 1024 */
    }
    load_put("half.data", half, sizeof(half));
    m = load_good("m.onnx", product(outside("w", 10, w, 2, "half.data", NULL, "2048"),
                                    outside("b", 10, b, 1, "half.data", "2048", "64")));
    memcpy(&f, product_weights(m) + sizeof(f) * 512, sizeof(f));
    T_NEAR(f, 1.5, 0);
    mdl_free(m);
}

TEST(the_identity_is_of_all_files)
{
    char one[65], again[65], other[65], alone[65];
    struct mdl_model *m;
    struct pb small = pb_small_model();
    size_t bytes;
    int fd;

    load_put("w.data", weights, sizeof(weights));
    m = load_good("m.onnx", product_of("w.data", "0", "4096"));
    memcpy(one, m->hash, sizeof(one));
    mdl_free(m);
    m = load_good("other_name.onnx", product_of("w.data", "0", "4096"));
    memcpy(again, m->hash, sizeof(again));
    mdl_free(m);
    weights[5] += 1;
    load_put("w.data", weights, sizeof(weights));
    weights[5] -= 1;
    m = load_good("m.onnx", product_of("w.data", "0", "4096"));
    memcpy(other, m->hash, sizeof(other));
    mdl_free(m);
    T_STR(one, again);
    T_TRUE(strcmp(one, other) != 0);
    bytes = small.bytes; /* that of a file alone is the hash of its bytes, as ever */
    m = load_good("m.onnx", small);
    T_EQ(m->data_file_count, 0);
    fd = open(load_path("m.onnx"), O_RDONLY | O_CLOEXEC);
    T_EQ(mdl_hash_file(fd, bytes, 1, alone), 0);
    close(fd);
    T_STR(m->hash, alone);
    mdl_free(m);
}

static int refuse(const char *location, const char *offset, const char *length)
{
    return load_model(product_of(location, offset, length));
}

TEST(places_out_of_the_folder)
{
    char outside_path[300], inside_path[300];

    load_put("w.data", weights, sizeof(weights));
    snprintf(inside_path, sizeof(inside_path), "%s", load_path("w.data"));
    T_EQ(refuse(inside_path, "0", "4096"), -EXDEV); /* absolute, though below */
    T_CONTAINS(load_error, "must be a path below the model's folder");
    T_CONTAINS(load_error, "initializer 0 'w'");
    T_EQ(refuse("../w.data", "0", "4096"), -EXDEV);
    T_EQ(refuse("sub/../../w.data", "0", "4096"), -EXDEV);
    T_EQ(refuse("sub/../w.data", "0", "4096"), 0);
    T_EQ(refuse("..", "0", "4096"), -EXDEV);
    T_EQ(refuse("", "0", "4096"), -EBADMSG);
    T_CONTAINS(load_error, "no location");
    snprintf(outside_path, sizeof(outside_path), "%s-outside", load_folder);
    mkdir(outside_path, 0700);
    T_EQ(symlink(outside_path, load_path("out")), 0);
    T_EQ(refuse("out/w.data", "0", "4096"), -EXDEV);
    T_CONTAINS(load_error, "leads out of the model's folder");
    T_EQ(symlink("/dev/zero", load_path("zero.data")), 0);
    T_EQ(refuse("zero.data", "0", "4096"), -EXDEV);
    T_EQ(symlink(inside_path, load_path("whole.data")), 0);
    T_EQ(refuse("whole.data", "0", "4096"), -EXDEV);
    T_CONTAINS(load_error, "is or leads through an absolute link");
    T_EQ(symlink("w.data", load_path("link.data")), 0); /* stays inside */
    T_EQ(refuse("link.data", "0", "4096"), 0);
    rmdir(outside_path);
}

TEST(things_that_are_no_data_files)
{
    char name[NAME_MAX + 2] = "";

    alarm(20); /* a fifo that blocks would hang the test for good */
    T_EQ(refuse("missing.data", "0", "4096"), -ENOENT);
    T_CONTAINS(load_error, "missing.data: No such file");
    memset(name, 'n', sizeof(name) - 1);
    T_EQ(refuse(name, "0", "4096"), -ENAMETOOLONG);
    T_CONTAINS(load_error, "nnn...nnn");
    T_CONTAINS(load_error, "n: File name too long");
    name[250] = '\0';
    T_EQ(refuse(name, "0", "4096"), -ENOENT);
    T_CONTAINS(load_error, "n: No such file");
    T_EQ(mkfifo(load_path("fifo.data"), 0600), 0);
    T_EQ(refuse("fifo.data", "0", "4096"), -EINVAL);
    T_CONTAINS(load_error, "not a regular file");
    mkdir(load_path("folder.data"), 0700);
    T_EQ(refuse("folder.data", "0", "4096"), -EISDIR);
    T_EQ(symlink("turn.data", load_path("turn.data")), 0);
    T_EQ(refuse("turn.data", "0", "4096"), -ELOOP);
    load_put("empty.data", "", 0);
    T_EQ(refuse("empty.data", "0", "4096"), -EBADMSG);
    alarm(0);
}

TEST(ranges_that_are_not_in_the_file)
{
    load_put("w.data", weights, sizeof(weights));
    T_EQ(refuse("w.data", "4096", "4096"), 0); /* up to the last byte */
    T_EQ(refuse("w.data", "4097", "4096"), -EBADMSG);
    T_CONTAINS(load_error, "w.data has 8192 bytes; 4096 from byte 4097 are meant");
    T_EQ(refuse("w.data", "8193", NULL), -EBADMSG);
    T_EQ(refuse("w.data", "0", "4095"), -EBADMSG);
    T_CONTAINS(load_error, "4095 bytes where its shape needs 4096");
    T_EQ(refuse("w.data", "0", "4100"), -EBADMSG);
    T_EQ(refuse("w.data", "18446744073709551615", "4096"), -EBADMSG);
    T_EQ(refuse("w.data", "18446744073709551616", "4096"), -EBADMSG);
    T_CONTAINS(load_error, "not a number");
    T_EQ(refuse("w.data", "-4", "4096"), -EBADMSG);
    T_EQ(refuse("w.data", "0x10", "4096"), -EBADMSG);
    T_EQ(refuse("w.data", "", "4096"), -EBADMSG);
    T_EQ(refuse("w.data", "0", "99999999999999999999999"), -EBADMSG);
}

TEST(tensors_that_contradict_themselves)
{
    static const int64_t w[] = {32, 32}, b[] = {32};
    struct pb twice = outside("w", 1, w, 2, "w.data", "0", "4096"), raw, unknown, nowhere;

    load_put("w.data", weights, sizeof(weights));
    put_entry(&twice, "offset", "4");
    T_EQ(load_model(product(twice, outside("b", 1, b, 1, "w.data", "0", NULL))), -EBADMSG);
    T_CONTAINS(load_error, "gives a key twice");
    raw = outside("w", 1, w, 2, "w.data", "0", "4096");
    pb_bytes(&raw, 9, weights, 4096);
    T_EQ(load_model(product(raw, outside("b", 1, b, 1, "w.data", "0", NULL))), -EBADMSG);
    T_CONTAINS(load_error, "in several");
    unknown = pb_tensor("w", 1, w, 2);
    pb_int(&unknown, 14, 7);
    T_LT(load_model(product(unknown, outside("b", 1, b, 1, "w.data", "0", NULL))), 0);
    nowhere = pb_tensor("w", 1, w, 2);
    pb_int(&nowhere, 14, 1);
    T_EQ(load_model(product(nowhere, outside("b", 1, b, 1, "w.data", "0", NULL))), -EBADMSG);
    T_CONTAINS(load_error, "no location");
}

/* A file of holes costs nothing, but what it claims is bounded all the same. */
TEST(files_that_are_too_large)
{
    const char *path = load_path("holes.data");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    T_EQ(ftruncate(fd, 6ll << 30), 0);
    close(fd);
    T_EQ(refuse("holes.data", "0", "4096"), -E2BIG);
    T_CONTAINS(load_error, "holes.data");
}

TEST(too_many_files)
{
    static const int64_t one[] = {1};
    struct pb g = {0};
    char name[32];

    for (int i = 0; i < 4200; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        load_put(name, weights, 4);
        pb_sub(&g, 5, outside(name, 1, one, 1, name, NULL, NULL));
    }
    pb_sub(&g, 1, pb_node("Relu", "relu", "x", NULL, "y"));
    pb_sub(&g, 11, pb_value("x", 1, one, 1));
    pb_sub(&g, 12, pb_value("y", 1, one, 1));
    T_EQ(load_model(pb_model(g, 10, 18)), -E2BIG);
    T_CONTAINS(load_error, "more than 4096 files");
}

/* Called in the middle of a load, since the model has a constant to be computed. */
static int change_file(const struct mdl_model *m, void *arena)
{
    static const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    if (utimensat(AT_FDCWD, load_path("w.data"), times, 0) < 0) {
        abort();
    }
    return -EOPNOTSUPP;
}

static int replace_file(const struct mdl_model *m, void *arena)
{
    load_put("new.data", weights, sizeof(weights));
    if (rename(load_path("new.data"), load_path("w.data")) < 0) {
        abort();
    }
    return -EOPNOTSUPP;
}

TEST(files_that_change_during_the_load)
{
    static const int64_t x[] = {1, 32};
    static const mdl_const_eval_fn hooks[] = {change_file, replace_file};

    for (size_t i = 0; i < base_array_count(hooks); i++) {
        struct mdl_load_options options = {.const_eval = hooks[i]};
        struct pb g = {0}, m;
        struct mdl_model *model = NULL;

        load_put("w.data", weights, sizeof(weights));
        pb_sub(&g, 1, pb_node("Softplus", "fold", "w", NULL, "f"));
        pb_sub(&g, 1, pb_node("Mul", "mul", "x", "f", "y"));
        pb_sub(&g, 5, outside("w", 1, x, 2, "w.data", "0", NULL));
        pb_sub(&g, 11, pb_value("x", 1, x, 2));
        pb_sub(&g, 12, pb_value("y", 1, x, 2));
        m = pb_model(g, 10, 18);
        T_EQ(mdl_load(load_put("m.onnx", m.data, m.bytes), &options, load_error, &model), -EBADMSG);
        pb_free(&m);
        T_CONTAINS(load_error, "w.data: the file changed while it was read");
    }
}

TEST(a_segment_keeps_the_mapping)
{
    struct mdl_model *whole, *part = NULL;

    load_put("w.data", weights, sizeof(weights));
    whole = load_good("m.onnx", product_of("w.data", "4", "4096"));
    T_EQ(mdl_segment(whole, 0, whole->unit_count - 1, NULL, load_error, &part), 0);
    T_STR(part->hash, whole->hash);
    T_EQ(part->data_file_count, 1);
    T_TRUE(product_weights(part) == product_weights(whole));
    mdl_free(whole);
    T_TRUE(memcmp(product_weights(part), (const char *)weights + 4, 4096) == 0);
    T_STR(part->data_files[0].path, load_path("w.data"));
    mdl_free(part);
}

/* Parts of a model's file are what other boards send; they send no data files. */
TEST(parts_of_a_model_with_data_files)
{
    static unsigned char hash[1][MDL_HASH_BYTES];
    static bool present[1];
    struct pb m = product_of("w.data", "4", "4096");
    struct mdl_leaves leaves = {
        .file_bytes = m.bytes, .count = 1, .hashes = hash, .present = present};
    struct mdl_load_options options = {.leaves = &leaves};
    struct mdl_model *model = NULL;

    load_put("w.data", weights, sizeof(weights));
    T_EQ(mdl_load(load_put("m.onnx", m.data, m.bytes), &options, load_error, &model), -EOPNOTSUPP);
    pb_free(&m);
    T_CONTAINS(load_error, "save it as one file");
}

/* The model's file as a link: what is beside the link counts, then what is beside the file. */
TEST(a_link_to_a_model)
{
    struct pb m = product_of("far.data", "0", "4096");
    struct mdl_model *model = NULL;
    char target[300];

    mkdir(load_path("far"), 0700);
    load_put("far/far.onnx", m.data, m.bytes);
    pb_free(&m);
    load_put("far/far.data", weights, sizeof(weights));
    snprintf(target, sizeof(target), "%s", load_path("far/far.onnx"));
    T_EQ(symlink(target, load_path("near.onnx")), 0);
    T_EQ(load_keep(load_path("near.onnx"), &model), 0);
    T_STR(model->data_files[0].path, load_path("far/far.data"));
    mdl_free(model);
    load_put("far.data", weights, 100);
    T_EQ(load_try(load_path("near.onnx"), false), -EBADMSG);
    T_EQ(unlink(load_path("far.data")), 0);
}

/* Files beside a model are opened by it, so that no name leads outside of the folder. */
static bool has_openat2(void)
{
    struct open_how how = {.flags = O_PATH};
    long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

    if (fd >= 0) {
        close((int)fd);
    }
    return fd >= 0;
}

int main(int argc, char **argv)
{
    if (!has_openat2()) {
        puts("skipped: no openat2 (Linux 5.6; emulators may lack it)");
        return 77;
    }
    if (!mkdtemp(load_folder)) {
        perror(load_folder);
        return 1;
    }
    atexit(load_remove_folder);
    fill_weights();
    return t_main(argc, argv);
}
