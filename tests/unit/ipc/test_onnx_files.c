/* SPDX-License-Identifier: Apache-2.0 */
/* Which files pipectl sends with a model: the names in an ONNX file, wherever a tensor may be, and
 * nothing at all of bytes that are not one. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/pipectl/models/models.h"
#include "tests/harness.h"

#define FILE_BYTES 2048u

struct bytes {
    uint8_t data[FILE_BYTES];
    size_t count;
};

struct names {
    char all[512]; /* each with a space behind it */
    size_t count;
    int stop; /* returned at each name */
};

static int found(void *ctx, const char *name)
{
    struct names *n = ctx;
    size_t have = strlen(n->all);

    snprintf(n->all + have, sizeof(n->all) - have, "%s ", name);
    n->count++;
    return n->stop;
}

/* A field with a length. */
static struct bytes piece(unsigned field, const void *data, size_t bytes)
{
    struct bytes b = {0};

    for (unsigned head = field << 3 | 2; head;) {
        b.data[b.count++] = (uint8_t)((head & 0x7f) | (head > 0x7f ? 0x80 : 0));
        head >>= 7;
    }
    b.data[b.count++] = (uint8_t)((bytes & 0x7f) | 0x80);
    b.data[b.count++] = (uint8_t)(bytes >> 7);
    memcpy(b.data + b.count, data, bytes);
    b.count += bytes;
    return b;
}

static struct bytes in(unsigned field, struct bytes b)
{
    return piece(field, b.data, b.count);
}

static void append(struct bytes *to, struct bytes b)
{
    memcpy(to->data + to->count, b.data, b.count);
    to->count += b.count;
}

/* An entry of a map. */
static struct bytes entry(const char *key, const char *value)
{
    struct bytes b = piece(1, key, strlen(key));

    append(&b, piece(2, value, strlen(value)));
    return b;
}

/* A tensor whose values are in a file. */
static struct bytes tensor(const char *file)
{
    /* a varint, 4 bytes, 8 bytes */
    struct bytes t = {.data = {1 << 3, 7, 3 << 3 | 5, 1, 2, 3, 4, 4 << 3 | 1}, .count = 16};

    append(&t, in(13, entry("offset", "4096")));
    append(&t, in(13, entry("location", file)));
    append(&t, in(14, entry("location", "not_here")));
    return t;
}

/* One tensor in every place that a tensor can have. */
static struct bytes model(void)
{
    struct bytes attribute = in(5, tensor("of_attribute")), inner = in(5, tensor("of_subgraph"));
    struct bytes graph = in(5, tensor("weights")), node, root;

    append(&attribute, in(10, tensor("in_list")));
    append(&attribute, in(22, in(1, tensor("sparse_attribute"))));
    append(&attribute, in(6, inner));
    append(&attribute, in(11, inner));
    node = in(5, attribute);
    append(&graph, in(15, in(2, tensor("sparse"))));
    append(&graph, in(1, node));
    root = in(7, graph);
    append(&root, in(25, in(7, in(5, in(5, tensor("of_function"))))));
    return root;
}

static int read_bytes(struct bytes b, struct names *ret)
{
    int fd = memfd_create("onnx", MFD_CLOEXEC), r;

    *ret = (struct names){.stop = ret->stop};
    r = fd >= 0 && write(fd, b.data, b.count) == (ssize_t)b.count ? ctl_onnx_files(fd, found, ret)
                                                                  : -EIO;
    close(fd);
    return r;
}

TEST(names_are_found_wherever_a_tensor_is)
{
    struct names n = {0};

    T_EQ(read_bytes(model(), &n), 0);
    T_STR(n.all, "weights sparse of_attribute in_list sparse_attribute of_subgraph of_subgraph "
                 "of_function ");
}

TEST(the_first_refusal_ends_it)
{
    struct names n = {.stop = -EXDEV};

    T_EQ(read_bytes(model(), &n), -EXDEV);
    T_STR(n.all, "weights ");
}

TEST(a_cut_file_has_the_names_before_the_cut)
{
    struct bytes b = model();
    struct names n = {0};

    for (size_t most = b.count, count; most-- > 0;) {
        struct bytes cut = b;

        cut.count = most;
        T_EQ(read_bytes(cut, &n), 0);
        count = n.count;
        T_LE(count, 8);
    }
    T_EQ(n.count, 0);
}

TEST(any_bytes_end)
{
    int cases = t_times(4000);

    for (int i = 0; i < cases; i++) {
        struct bytes b = model();
        struct names n = {0};

        for (size_t k = (size_t)t_range(1, 8); k > 0; k--) {
            b.data[t_random() % b.count] = (uint8_t)t_random();
        }
        T_EQ(read_bytes(b, &n), 0);
    }
}

TEST(a_deep_file_ends)
{
    struct bytes b = {0};
    struct names n = {0};

    while (b.count < FILE_BYTES - 16) { /* attribute in graph in attribute ... */
        b = in(6, in(1, in(5, b)));
    }
    T_EQ(read_bytes(in(7, in(1, in(5, b))), &n), 0);
    T_EQ(n.count, 0);
}

TEST_MAIN()
