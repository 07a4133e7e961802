/* SPDX-License-Identifier: Apache-2.0 */
/* Files that lie: each is refused with a text and a code, none crashes, hangs or grows us. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base.h"
#include "model/hash.h"
#include "model/model.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

static char error[MDL_ERROR_MAX];
static char folder[] = "/tmp/piped-load-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[8][256]; /* good until the eighth next call */
    static int turn;

    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

static const char *put(const char *name, const void *data, size_t bytes)
{
    const char *path = in_folder(name);
    FILE *f;

    unlink(path); /* cutting a file to nothing makes some file systems write it out */
    f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        abort();
    }
    return path;
}

/* Loads, prints what is refused unless @quiet, frees. */
static int load(const char *path, bool quiet)
{
    struct mdl_model *m = NULL;
    int r;

    memset(error, 'X', sizeof(error));
    error[MDL_ERROR_MAX - 1] = '\0';
    r = mdl_load(path, NULL, error, &m);
    if (r < 0 && !quiet) {
        printf("  %d (%s): %s\n", r, strerror(-r), error);
    }
    if (r == 0) {
        m = mdl_free(m);
    }
    return r;
}

static int load_model(struct pb model)
{
    int r = load(put("m.onnx", model.data, model.bytes), false);

    pb_free(&model);
    return r;
}

TEST(a_good_file)
{
    struct pb small = pb_small_model();
    const char *path = put("small.onnx", small.data, small.bytes);
    struct mdl_load_options o = {.name = "other"};
    struct mdl_model *m = NULL;
    unsigned char leaf[MDL_HASH_BYTES];
    struct mdl_hash h;
    char hex[65];

    mdl_hash_init_node(&h, 0, 0, true);
    mdl_hash_update(&h, small.data, small.bytes);
    mdl_hash_end(&h, leaf);
    mdl_hash_init_node(&h, 0, 1, true);
    mdl_hash_update(&h, leaf, sizeof(leaf));
    mdl_hash_hex(&h, hex);
    pb_free(&small);
    T_EQ(mdl_load(path, NULL, error, &m), 0);
    T_STR(m->name, "small");
    T_STR(m->hash, hex);
    T_EQ(m->input_count, 1);
    T_STR(m->inputs[0].name, "x");
    T_EQ(m->inputs[0].bytes, 3 * 4 * 4 * 4);
    T_EQ(m->output_count, 1);
    T_TRUE(!m->preproc.known);
    T_NEAR(m->preproc.std[2], 1, 0);
    m = mdl_free(m);
    T_EQ(mdl_load(path, &o, error, &m), 0);
    T_STR(m->name, "other");
    m = mdl_free(m);
    T_TRUE(mdl_free(NULL) == NULL);
}

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

TEST(the_hash_of_a_file_is_blake2b_as_a_tree)
{
    /* values of Python's hashlib, see mdl_hash_file() */
    static const struct {
        size_t bytes;
        const char *hex;
    } wanted[] = {
        {0, "3d2eb0103777009769fb57af2d191da5d5dfb29844dbf6c8362ee4920513ac28"},
        {3, "034979ed8c19460228b7647ad7ec70c3a99315e9ce8d2fa5f982b73b349b9c7d"},
        {MDL_HASH_LEAF_BYTES, "3018f1242e0bf67a15ca18b1ef1e30ca041dc0e62f1245b639d31bb5f4072bd1"},
        {MDL_HASH_LEAF_BYTES + 1,
         "ce117cca0b9f50057b758a47676cc18ea3e6de791fc8ee893245922ec541d9d4"},
        {5 * MDL_HASH_LEAF_BYTES,
         "872987ffe890bdd398d491be156c780aef8d0087c7fc193f52de9dbe15302f9b"},
        {9 * MDL_HASH_LEAF_BYTES + 12345,
         "1f4f13e05d6a948ab9a1cf403fe128fd78ac4fc5ff67a4e63f874c3e21ff680e"},
    };
    size_t most = wanted[base_array_count(wanted) - 1].bytes;
    unsigned char *data = malloc(most);
    char hex[65];
    int fd;

    for (size_t i = 0; i < most; i++) {
        data[i] = (unsigned char)(i * 7 + (i >> 8));
    }
    fd = open(put("hashed", data, most), O_RDONLY | O_CLOEXEC);
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

TEST(cut_off_anywhere)
{
    struct pb small = pb_small_model();

    for (size_t n = 0; n < small.bytes; n++) {
        T_LT(load(put("cut.onnx", small.data, n), n % 40 != 0), 0);
        T_TRUE(error[0] != '\0' && strlen(error) < MDL_ERROR_MAX);
    }
    T_EQ(load(put("cut.onnx", small.data, small.bytes), false), 0);
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
        if (load(put("flip.onnx", broken, small.bytes), i % 400 != 0) < 0) {
            T_TRUE(error[0] != '\0' && strlen(error) < MDL_ERROR_MAX);
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
        T_CONTAINS(error, "messages are nested deeper than 64");
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
    T_CONTAINS(error, "q");
    T_LT(load_model(chain("x", "m", "m", "z", d, 4)), 0); /* nobody makes the output */
    T_CONTAINS(error, "y");
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
    T_CONTAINS(error, "conv1");
    T_CONTAINS(error, "m.onnx");
}

TEST(absurd_counts)
{
    struct pb g = {0}, name = {0}, m;

    for (int i = 0; i < 450000; i++) { /* 2 bytes each, some 100 once unpacked */
        pb_bytes(&g, 1, "", 0);
    }
    T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
    T_CONTAINS(error, "more than 400000 nodes, attributes, tensors and values");
    g = (struct pb){0};
    for (int i = 0; i < 1100000; i++) {
        pb_bytes(&name, 1, "", 0);
    }
    pb_sub(&g, 1, name);
    T_EQ(load_model(pb_model(g, 7, 13)), -E2BIG);
    T_CONTAINS(error, "too many names");
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
    T_CONTAINS(error, "the model's structure is larger than 32 MiB");
}

TEST(things_that_are_no_model_files)
{
    char garbage[5000];
    const char *path;
    int fd;

    alarm(20); /* a fifo that blocks would hang the test for good */
    T_EQ(load(put("empty.onnx", "", 0), false), -EBADMSG);
    T_CONTAINS(error, "empty.onnx: the file is empty");
    T_EQ(load(in_folder("missing.onnx"), false), -ENOENT);
    T_CONTAINS(error, "missing.onnx: No such file");
    T_EQ(load(folder, false), -EISDIR);
    T_CONTAINS(error, "not a regular file");
    path = in_folder("fifo.onnx");
    T_EQ(mkfifo(path, 0600), 0);
    T_EQ(load(path, false), -EINVAL);
    T_CONTAINS(error, "fifo.onnx: not a regular file");
    T_EQ(load("/dev/zero", false), -EINVAL);
    path = in_folder("loop.onnx");
    T_EQ(symlink(path, path), 0);
    T_EQ(load(path, false), -ELOOP);
    T_EQ(load("", false), -ENOENT);
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < sizeof(garbage); i++) {
            garbage[i] = (char)t_random();
        }
        T_LT(load(put("garbage.onnx", garbage, sizeof(garbage)), round > 1), 0);
        T_LT(load(put("garbage.json", garbage, sizeof(garbage)), round > 1), 0);
    }
    path = in_folder("huge.onnx"); /* a hole: nothing is read or mapped */
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_EQ(ftruncate(fd, 5ll << 30), 0);
    close(fd);
    T_EQ(load(path, false), -E2BIG);
    T_EQ(truncate(path, 1ll << 20), 0); /* zeros are no fields */
    T_EQ(load(path, false), -EBADMSG);
    path = in_folder("huge.json");
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_EQ(ftruncate(fd, 9ll << 20), 0);
    close(fd);
    T_EQ(load(path, false), -E2BIG);
    alarm(0);
}

TEST(unreadable)
{
    struct pb small = pb_small_model();
    const char *path = put("secret.onnx", small.data, small.bytes);
    bool root = geteuid() == 0;
    int r;

    pb_free(&small);
    T_EQ(chmod(path, 0), 0);
    T_EQ(chmod(folder, 0755), 0);
    if (root && seteuid(65534) < 0) { /* root reads every file: be nobody for this one */
        T_SKIP("root cannot become another user here");
    }
    r = load(path, false);
    if (root && seteuid(0) < 0) {
        abort();
    }
    T_EQ(r, -EACCES);
    T_CONTAINS(error, "secret.onnx: Permission denied");
}

TEST(sidecars)
{
    struct pb small = pb_small_model();
    const char *path = put("side.onnx", small.data, small.bytes);
    static const char good[] =
        "{\"preprocess\": {\"mean\": 3, \"size\": [4, 4]}, \"labels\": [\"a\", "
        "\"b\"]}",
                      wrong[] = "{\"preprocess\": {\"size\": [4, 5]}}", bad[] = "{\"x\": 1}";
    struct mdl_model *m = NULL;

    pb_free(&small);
    put("side.sidecar.json", good, sizeof(good) - 1);
    T_EQ(mdl_load(path, NULL, error, &m), 0);
    T_TRUE(m->preproc.known);
    T_NEAR(m->preproc.mean[1], 3, 0);
    T_EQ(m->label_count, 2);
    T_STR(m->labels[1], "b");
    m = mdl_free(m);
    put("side.sidecar.json", wrong, sizeof(wrong) - 1);
    T_EQ(load(path, false), -EBADMSG);
    T_CONTAINS(error, "sidecar key 'size': 5 where input 'x' has 4");
    put("side.sidecar.json", bad, sizeof(bad) - 1);
    T_EQ(load(path, false), -EBADMSG);
    T_CONTAINS(error, "side.sidecar.json: key 'x': unknown key");
}

/* A fully connected layer of @n x @n, and an Add with a constant of n. */
static const char *put_large(const char *name, size_t n)
{
    int64_t x[] = {1, (int64_t)n}, w[] = {(int64_t)n, (int64_t)n}, c[] = {(int64_t)n};
    size_t bytes = n * n * sizeof(float);
    struct pb g = {0}, t, m;
    float *data = calloc(n, n * sizeof(float));
    const char *path;

    if (!data) {
        abort();
    }
    for (size_t i = 0; i < n * n; i += 512) {
        data[i] = (float)i;
    }
    pb_sub(&g, 1, pb_node("MatMul", "product", "x", "w", "p"));
    pb_sub(&g, 1, pb_node("Mul", "sum", "p", "x", "s"));
    pb_sub(&g, 1, pb_node("Pow", "power", "s", "c", "y"));
    t = pb_tensor("w", 1, w, 2);
    pb_bytes(&t, 9, data, bytes);
    pb_sub(&g, 5, t);
    t = pb_tensor("c", 1, c, 1);
    pb_bytes(&t, 9, data, n * sizeof(float));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    m = pb_model(g, 7, 13);
    path = put(name, m.data, m.bytes);
    pb_free(&m);
    free(data);
    return path;
}

static long status_kb(const char *key)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    long kb = -1;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kb = atol(line + strlen(key) + 1);
        }
    }
    if (f) {
        fclose(f);
    }
    return kb;
}

static double sum_constants(const struct mdl_model *m, bool heavy)
{
    double sum = 0;

    for (size_t o = 0; o < m->op_count; o++) {
        bool is_heavy = m->ops[o].kind == MDL_OP_MATMUL || m->ops[o].kind == MDL_OP_GEMM;

        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            size_t t = m->ops[o].in[k];
            const struct mdl_storage *s =
                t != MDL_NONE ? &m->storages[m->tensors[t].storage] : NULL;

            if (!s || s->home != MDL_HOME_CONST || is_heavy != heavy) {
                continue;
            }
            for (size_t i = 0; i + 4 <= s->bytes; i += 4) {
                float f;

                memcpy(&f, (const char *)s->data + i, 4);
                sum += f;
            }
        }
    }
    return sum;
}

TEST(weights_cost_no_memory_until_they_are_used)
{
    const char *path = put_large("large.onnx", 4096); /* 64 MiB */
    struct mdl_model *m = NULL;
    FILE *clear = fopen("/proc/self/clear_refs", "w");
    double before, after;
    long base, kb;

    if (!clear || fputs("5", clear) < 0 || fclose(clear) != 0) { /* resets VmHWM */
        T_SKIP("the peak of memory cannot be reset here");
    }
    base = status_kb("VmRSS");
    T_EQ(mdl_load(path, NULL, error, &m), 0);
    kb = status_kb("VmHWM") - base;
    printf("  load of 64 MiB: %ld kB at most, %ld kB after it\n", kb, status_kb("VmRSS") - base);
    T_LT(kb, 8 * 1024);
    before = sum_constants(m, true);
    kb = status_kb("RssFile");
    T_LT(60 * 1024, kb);
    for (size_t i = 0; i < m->op_count; i++) {
        mdl_drop_op_weights(m, i);
    }
    T_LT(status_kb("RssFile"), kb - 60 * 1024);
    after = sum_constants(m, true); /* they stay readable */
    T_TRUE(before == after && before != 0);
    mdl_free(m);
}

TEST(a_file_cut_short_later_is_harmless)
{
    const char *path = put_large("shrink.onnx", 64);
    struct mdl_model *m = NULL;
    double before;

    T_EQ(mdl_load(path, NULL, error, &m), 0);
    before = sum_constants(m, false);
    T_EQ(truncate(path, 0), 0);
    T_TRUE(sum_constants(m, false) == before); /* no SIGBUS: small constants were copied */
    mdl_free(m);
}

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0) {
        fprintf(stderr, "%s is left behind\n", folder);
    }
}

int main(int argc, char **argv)
{
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    atexit(remove_folder);
    return t_main(argc, argv);
}
