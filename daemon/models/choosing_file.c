/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices in a file, choice-HASH-NAME.v1.json in the state folder: for each kind of cores the
 * primitive of every op, of every pair that runs as one, and the time of every op. Beside them
 * stands what they are good for; where any of it differs, the choice counts as not there.
 */
#include <errno.h>
#include <jansson.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "daemon/choose_private.h"

#define CHOICE_VERSION 1
#define FILE_BYTES_MAX (16 << 20)
#define NS_MAX 1e15

struct key {
    char cpu[1024], libraries[1024], table[32], wanted[64];
};

/* FNV-1a. Source: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV non-cryptographic hash algorithm". */
static uint64_t mix(uint64_t h, const char *text)
{
    for (; *text; text++) {
        h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
    }
    return (h ^ 0xff) * 0x100000001b3ull;
}

/* The model of core @cpu as the kernel tells it. */
static void describe_core(int cpu, char *ret, size_t bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    int at = -1;
    size_t used = 0;

    ret[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');

        if (!colon) {
            continue;
        }
        if (strncmp(line, "processor", 9) == 0) {
            at = atoi(colon + 1);
        } else if (at == cpu && used < bytes &&
                   (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU imp", 7) == 0 ||
                    strncmp(line, "CPU part", 8) == 0 || strncmp(line, "CPU var", 7) == 0)) {
            used += (size_t)snprintf(ret + used, bytes - used, "%.*s ",
                                     (int)strcspn(colon + 2, "\n"), colon + 2);
        }
    }
    if (f) {
        fclose(f);
    }
}

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const ours[] = {"blas", "dnnl", "XNNPACK", "pthreadpool", "libgomp"};
    struct key *k = arg;
    struct stat st;

    (void)size;
    for (size_t i = 0; i < base_array_count(ours); i++) {
        const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
        size_t used = strlen(k->libraries);

        if (name && strstr(name, ours[i]) && stat(info->dlpi_name, &st) == 0) {
            snprintf(k->libraries + used, sizeof(k->libraries) - used, "%s:%lld:%lld ", name + 1,
                     (long long)st.st_size, (long long)st.st_mtim.tv_sec);
            break;
        }
    }
    return 0;
}

static void describe(const struct dmn_choose *c, struct key *k)
{
    const struct krn_variant *table;
    uint64_t h = 0xcbf29ce484222325ull;
    size_t count;

    *k = (struct key){0};
    for (size_t i = 0; i < c->kind_count; i++) {
        size_t used = strlen(k->cpu);
        char core[256];

        if (c->kinds[i].same == i) {
            describe_core(base_max(c->kinds[i].cpu, 0), core, sizeof(core));
            snprintf(k->cpu + used, sizeof(k->cpu) - used, "%.*s:%s%x;", (int)PL_EP_NAME_MAX,
                     c->kinds[i].name, core, krn_cpu_features());
        }
    }
    dl_iterate_phdr(add_library, k);
    table = krn_variants(&count);
    for (size_t i = 0; i < count; i++) {
        h = mix(h, table[i].name);
    }
    snprintf(k->table, sizeof(k->table), "%s-%016llx", PIPED_VERSION, (unsigned long long)h);
    snprintf(k->wanted, sizeof(k->wanted), "%s%s-%zu",
             c->options.objective == KRN_MEMORY ? "memory" : "latency",
             c->options.exact ? "" : "-inexact", c->options.packed_bytes_max);
}

static bool file_path(const struct dmn_choose *c, const struct mdl_model *m, const char *name,
                      const char *suffix, char *ret, size_t bytes)
{
    int n = snprintf(ret, bytes, "%s/choice-%.64s-%s.v%d.json%s", c->folder ? c->folder : "",
                     m->hash, name, CHOICE_VERSION, suffix);

    return c->folder && n > 0 && (size_t)n < bytes;
}

static bool equals(json_t *root, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(root, key));

    return text && strcmp(text, value) == 0;
}

/* Row @name of op @op, if it is one that can run it. */
static const struct krn_variant *row(const struct mdl_model *m, size_t op, json_t *name, bool fused)
{
    const struct krn_variant *v =
        json_is_string(name) ? krn_row_find(json_string_value(name)) : NULL;

    return v && v->fused == fused && krn_usable(v, m, op) ? v : NULL;
}

/* One kind's ops: [own, fused or null, ns] each. */
static int read_kind(const struct mdl_model *m, json_t *list, struct krn_chosen *ret)
{
    if (json_array_size(list) != m->op_count || krn_choice_init(&ret->choice, m->op_count) < 0) {
        return -EBADMSG;
    }
    ret->op_ns = calloc(m->op_count + 1, sizeof(*ret->op_ns));
    if (!ret->op_ns) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        json_t *entry = json_array_get(list, i), *fused = json_array_get(entry, 1);
        double ns = json_number_value(json_array_get(entry, 2));

        ret->choice.own[i] = row(m, i, json_array_get(entry, 0), false);
        ret->choice.fused[i] = json_is_null(fused) ? NULL : row(m, i, fused, true);
        ret->op_ns[i] = ns;
        ret->ns += ns;
        if (!ret->choice.own[i] || (!ret->choice.fused[i] && !json_is_null(fused)) ||
            (i > 0 && ret->choice.fused[i] && ret->choice.fused[i - 1]) || !isfinite(ns) ||
            ns < 0 || ns > NS_MAX) {
            return -EBADMSG;
        }
    }
    return 0;
}

static int read_kinds(struct dmn_choose *c, const struct mdl_model *m, json_t *root)
{
    json_t *kinds = json_object_get(root, "kinds");
    int r = 0;

    for (size_t k = 0; r == 0 && k < c->kind_count; k++) {
        if (c->kinds[k].same == k) {
            r = read_kind(m, json_object_get(kinds, c->kinds[k].name), &c->of[k]);
        }
    }
    for (size_t k = 0; r < 0 && k < c->kind_count; k++) {
        krn_chosen_deinit(&c->of[k]);
    }
    return r;
}

/* What the kept choice was made for that is no longer so, or NULL. */
static const char *outdated(json_t *root, const struct key *key)
{
    const struct {
        const char *name, *now, *text;
    } parts[] = {{"cpu", key->cpu, "another CPU"},
                 {"libraries", key->libraries, "other libraries"},
                 {"table", key->table, "another version of piped"},
                 {"wanted", key->wanted, "another objective"}};

    for (size_t i = 0; i < base_array_count(parts); i++) {
        if (!equals(root, parts[i].name, parts[i].now)) {
            return parts[i].text;
        }
    }
    return NULL;
}

int dmn_choose_read(struct dmn_choose *c, const struct mdl_model *m, const char *name)
{
    base_autofree struct key *key = malloc(sizeof(*key));
    const char *other = NULL;
    char path[4096];
    struct stat st;
    json_t *root;
    int r = -ENOENT;

    if (!key || !file_path(c, m, name, "", path, sizeof(path)) || stat(path, &st) < 0) {
        return -ENOENT;
    }
    root = S_ISREG(st.st_mode) && st.st_size <= FILE_BYTES_MAX
               ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL)
               : NULL;
    describe(c, key);
    if (json_integer_value(json_object_get(root, "version")) != CHOICE_VERSION ||
        !json_is_object(json_object_get(root, "kinds"))) {
        r = -EBADMSG;
    } else if ((other = outdated(root, key)) == NULL) {
        r = read_kinds(c, m, root);
    }
    json_decref(root);
    if (r == -EBADMSG) {
        snprintf(c->note, sizeof(c->note), "%.180s is no kept choice of primitives: measured anew",
                 path);
    } else if (other) {
        snprintf(c->note, sizeof(c->note), "%.180s was measured for %s: measured anew", path,
                 other);
    }
    return r < 0 ? -ENOENT : 0;
}

static json_t *kind_json(const struct krn_chosen *of)
{
    json_t *list = json_array();

    for (size_t i = 0; i < of->choice.op_count; i++) {
        const struct krn_variant *fused = of->choice.fused[i];

        json_array_append_new(list, json_pack("[s, o, f]", of->choice.own[i]->name,
                                              fused ? json_string(fused->name) : json_null(),
                                              of->op_ns[i]));
    }
    return list;
}

void dmn_choose_write(struct dmn_choose *c, const struct mdl_model *m, const char *name)
{
    base_autofree struct key *key = malloc(sizeof(*key));
    char path[4096], temporary[4096];
    json_t *kinds, *root;

    if (!key || !file_path(c, m, name, "", path, sizeof(path)) ||
        !file_path(c, m, name, ".new", temporary, sizeof(temporary))) {
        return;
    }
    describe(c, key);
    kinds = json_object();
    for (size_t k = 0; k < c->kind_count; k++) {
        if (c->kinds[k].same == k) {
            json_object_set_new(kinds, c->kinds[k].name, kind_json(&c->of[k]));
        }
    }
    root = json_pack("{s:i, s:s, s:s, s:s, s:s, s:o}", "version", CHOICE_VERSION, "cpu", key->cpu,
                     "libraries", key->libraries, "table", key->table, "wanted", key->wanted,
                     "kinds", kinds);
    if (!root || json_dump_file(root, temporary, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 ||
        rename(temporary, path) < 0) {
        snprintf(c->note, sizeof(c->note),
                 "its choice of primitives could not be kept in %.150s: %s", path, strerror(errno));
        unlink(temporary);
    }
    json_decref(root);
}
