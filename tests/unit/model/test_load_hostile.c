/* SPDX-License-Identifier: Apache-2.0 */
/* Files that lie: each is refused with a text and a code, none crashes, hangs or grows us. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/model/load_files.h"

TEST(cut_off_anywhere)
{
    struct pb small = pb_small_model();

    for (size_t n = 0; n < small.bytes; n++) {
        T_LT(load_try(load_put("cut.onnx", small.data, n), n % 40 != 0), 0);
        T_TRUE(load_error[0] != '\0' && strlen(load_error) < MDL_ERROR_MAX);
    }
    T_EQ(load_try(load_put("cut.onnx", small.data, small.bytes), false), 0);
    pb_free(&small);
}

TEST(flipped_bits)
{
    struct pb small = pb_small_model();
    size_t refused = 0;

    for (int i = 0; i < 6000; i++) {
        unsigned char broken[1024];

        T_LE(small.bytes, sizeof(broken));
        memcpy(broken, small.data, small.bytes);
        for (int k = i % 4; k >= 0; k--) {
            broken[t_range(0, (int64_t)small.bytes - 1)] ^= (unsigned char)(1u << t_range(0, 7));
        }
        if (load_try(load_put("flip.onnx", broken, small.bytes), i % 400 != 0) < 0) {
            T_TRUE(load_error[0] != '\0' && strlen(load_error) < MDL_ERROR_MAX);
            refused++;
        }
    }
    printf("  %zu of 6000 refused\n", refused);
    T_LT(1000, refused); /* a flip in a weight is no error */
    pb_free(&small);
}

/* A type of a sequence of a sequence ..., and an If in an If. */
TEST(nested_ten_thousand_deep)
{
    for (int which = 0; which < 2; which++) {
        struct pb inner = {0}, g = {0}, n;

        for (int i = 0; i < 10000; i++) {
            struct pb a = {0}, b = {0};

            if (which == 0) { /* TypeProto.sequence_type.elem_type */
                pb_sub(&a, 1, inner);
                pb_sub(&b, 4, a);
            } else { /* GraphProto.node.attribute.g */
                struct pb c = {0};

                pb_text(&a, 1, "body");
                pb_sub(&a, 6, inner);
                pb_sub(&c, 5, a);
                pb_sub(&b, 1, c);
            }
            inner = b;
        }
        n = pb_node("If", "deep", "x", NULL, "y");
        if (which == 0) {
            struct pb v = {0};

            pb_text(&v, 1, "x");
            pb_sub(&v, 2, inner);
            pb_sub(&g, 11, v);
        } else {
            struct pb a = {0};

            pb_text(&a, 1, "then_branch");
            pb_sub(&a, 6, inner);
            pb_sub(&n, 5, a);
        }
        pb_sub(&g, 1, n);
        pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
        T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
        T_CONTAINS(load_error, "messages are nested deeper than 64");
    }
}

static struct pb chain(const char *a, const char *b, const char *c, const char *d,
                       const int64_t *dims, size_t rank)
{
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Relu", "first", a, NULL, b));
    pb_sub(&g, 1, pb_node("Relu", "second", c, NULL, d));
    pb_sub(&g, 11, pb_value("x", 1, dims, rank));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    return pb_model(g, 7, 13);
}

TEST(graphs_that_make_no_sense)
{
    static const int64_t d[] = {1, 3, 4, 4}, big[] = {1, 2000000000, 2000000000, 2000000000},
                         wide[] = {1, 1000, 1000, 1000};

    T_EQ(load_model(chain("x", "m", "m", "y", d, 4)), 0);
    T_LT(load_model(chain("y", "m", "m", "y", d, 4)), 0); /* a cycle of two */
    T_LT(load_model(chain("m", "m", "m", "y", d, 4)), 0); /* a node that reads itself */
    T_LT(load_model(chain("x", "m", "q", "y", d, 4)), 0); /* q is made nowhere */
    T_CONTAINS(load_error, "q");
    T_LT(load_model(chain("x", "m", "m", "z", d, 4)), 0); /* nobody makes the output */
    T_CONTAINS(load_error, "y");
    T_LT(load_model(chain("x", "m", "m", "y", big, 4)), 0);  /* sizes overflow */
    T_LT(load_model(chain("x", "m", "m", "y", wide, 4)), 0); /* 4 GB an activation */
}

TEST(weights_that_do_not_fit_their_operator)
{
    static const int64_t x[] = {1, 3, 4, 4}, w[] = {2, 5, 3, 3};
    static const float zeros[2 * 5 * 3 * 3];
    struct pb g = {0}, t = pb_tensor("w", 1, w, 4);

    pb_bytes(&t, 9, zeros, sizeof(zeros));
    pb_sub(&g, 1, pb_node("Conv", "conv1", "x", "w", "y"));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 4));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    T_LT(load_model(pb_model(g, 7, 13)), 0);
    T_CONTAINS(load_error, "conv1");
    T_CONTAINS(load_error, "m.onnx");
}

TEST(absurd_counts)
{
    struct pb g = {0}, name = {0}, m;

    for (int i = 0; i < 450000; i++) { /* 2 bytes each, some 100 once unpacked */
        pb_bytes(&g, 1, "", 0);
    }
    T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
    T_CONTAINS(load_error, "more than 400000 nodes, attributes, tensors and values");
    g = (struct pb){0};
    for (int i = 0; i < 1100000; i++) {
        pb_bytes(&name, 1, "", 0);
    }
    pb_sub(&g, 1, name);
    T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
    T_CONTAINS(load_error, "too many names");
    g = (struct pb){0};
    name = (struct pb){0};
    pb_text(&name, 1, "floats"); /* 40 MiB of structure */
    pb_varint(&name, 7 << 3 | 2);
    pb_varint(&name, 40u << 20);
    m = (struct pb){.data = calloc(1, 40u << 20), .bytes = 40u << 20};
    T_TRUE(m.data != NULL);
    pb_raw(&name, m.data, m.bytes);
    pb_free(&m);
    m = (struct pb){0};
    pb_sub(&m, 5, name);
    pb_sub(&g, 1, m);
    T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
    T_CONTAINS(load_error, "the model's structure is larger than 32 MiB");
}

TEST(things_that_are_no_model_files)
{
    char garbage[5000];
    const char *path;
    int fd;

    alarm(20); /* a fifo that blocks would hang the test for good */
    T_EQ(load_try(load_put("empty.onnx", "", 0), false), -EBADMSG);
    T_CONTAINS(load_error, "empty.onnx: the file is empty");
    T_EQ(load_try(load_path("missing.onnx"), false), -ENOENT);
    T_CONTAINS(load_error, "missing.onnx: No such file");
    T_EQ(load_try(load_folder, false), -EISDIR);
    T_CONTAINS(load_error, "not a regular file");
    path = load_path("fifo.onnx");
    T_EQ(mkfifo(path, 0600), 0);
    T_EQ(load_try(path, false), -EINVAL);
    T_CONTAINS(load_error, "fifo.onnx: not a regular file");
    T_EQ(load_try("/dev/zero", false), -EINVAL);
    path = load_path("loop.onnx");
    T_EQ(symlink(path, path), 0);
    T_EQ(load_try(path, false), -ELOOP);
    T_EQ(load_try("", false), -ENOENT);
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < sizeof(garbage); i++) {
            garbage[i] = (char)t_random();
        }
        T_LT(load_try(load_put("garbage.onnx", garbage, sizeof(garbage)), round > 1), 0);
        T_LT(load_try(load_put("garbage.json", garbage, sizeof(garbage)), round > 1), 0);
    }
    path = load_path("huge.onnx"); /* a hole: nothing is read or mapped */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_EQ(ftruncate(fd, 5ll << 30), 0);
    close(fd);
    T_EQ(load_try(path, false), -E2BIG);
    T_EQ(truncate(path, 1ll << 20), 0); /* zeros are no fields */
    T_EQ(load_try(path, false), -EBADMSG);
    path = load_path("huge.json");
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_EQ(ftruncate(fd, 9ll << 20), 0);
    close(fd);
    T_EQ(load_try(path, false), -E2BIG);
    alarm(0);
}

TEST(unreadable)
{
    struct pb small = pb_small_model();
    const char *path = load_put("secret.onnx", small.data, small.bytes);
    bool root = geteuid() == 0;
    int r;

    pb_free(&small);
    T_EQ(chmod(path, 0), 0);
    T_EQ(chmod(load_folder, 0755), 0);
    if (root && seteuid(65534) < 0) { /* root reads every file: be nobody for this one */
        T_SKIP("root cannot become another user here");
    }
    r = load_try(path, false);
    if (root && seteuid(0) < 0) {
        abort();
    }
    T_EQ(r, -EACCES);
    T_CONTAINS(load_error, "secret.onnx: Permission denied");
}

LOAD_MAIN()
