/* SPDX-License-Identifier: Apache-2.0 */
/* Choices in a file, choice-HASH-NAME.v2.json in the state folder: for each kind of core, the
 * primitive of every operator and of every pair that runs as one, and the time of every operator.
 * The file also says what it was measured for. If any of that differs, as after an upgrade, what
 * still fits serves at once, and the choice is measured again later (choosing_again.c). So it is if
 * its times left doubt; a file without "doubt" has none. What several frames at once gain is
 * with the operators that can; files of older versions lack it, and the next load measures it. */
#include <jansson.h>
#include <link.h>

#include "base/base.h"
#include "daemon/config/state_file.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/models/choosing_private.h"

#define NS_MAX 1e15

struct key {
    char cpu[1024], libraries[1024], table[32], wanted[64];
};

/* FNV-1a. Source: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV non-cryptographic hash algorithm". */
uint64_t dmn_choose_mix(uint64_t h, const char *text)
{
    for (; *text; text++) {
        h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
    }
    return (h ^ 0xff) * 0x100000001b3ull;
}

/* The kernel's name for the model of core @cpu. */
static void describe_core(int cpu, char *ret, size_t bytes)
{
    base_cleanup(dmn_file_close) FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    int at = -1;

    ret[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');

        if (!colon) {
            continue;
        }
        if (strncmp(line, "processor", 9) == 0) {
            at = atoi(colon + 1);
        } else if (at == cpu &&
                   (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU imp", 7) == 0 ||
                    strncmp(line, "CPU part", 8) == 0 || strncmp(line, "CPU var", 7) == 0)) {
            base_append(ret, bytes, "%.*s ", (int)strcspn(colon + 2, "\n"), colon + 2);
        }
    }
}

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const ours[] = {"blas", "dnnl", "XNNPACK", "pthreadpool", "libgomp"};
    struct key *k = arg;
    struct stat st;

    for (size_t i = 0; i < base_array_count(ours); i++) {
        const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

        if (name && strstr(name, ours[i]) && stat(info->dlpi_name, &st) == 0) {
            base_append(k->libraries, sizeof(k->libraries), "%s:%lld:%lld ", name + 1,
                        (long long)st.st_size, (long long)st.st_mtim.tv_sec);
            break;
        }
    }
    return 0;
}

static void describe_table(char *ret, size_t bytes)
{
    uint64_t h = DMN_CHOOSE_MIX_START;
    size_t count;
    const struct krn_primitive *table = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        h = dmn_choose_mix(h, table[i].name);
    }
    snprintf(ret, bytes, "%s-%016llx", PIPED_VERSION, (unsigned long long)h);
}

/* Return: what two boards' cores have in common if each runs best what the other does, and with the
 * same results: the CPU's model and features, the libraries, and the table of primitives. */
static uint64_t class_of(const struct dmn_choose *c, size_t kind)
{
    base_autofree struct key *key = calloc(1, sizeof(*key));
    uint64_t h = DMN_CHOOSE_MIX_START;
    char core[256], features[16], *at;

    if (!key) {
        return 0;
    }
    describe_core(base_max(c->kinds[kind].cpu, 0), core, sizeof(core));
    snprintf(features, sizeof(features), "%x", krn_cpu_features());
    describe_table(key->table, sizeof(key->table));
    dl_iterate_phdr(add_library, key);
    h = dmn_choose_mix(dmn_choose_mix(dmn_choose_mix(h, core), features), key->table);
    at = key->libraries;
    for (char *word; (word = strsep(&at, " ")) != NULL;) { /* boards differ in the dates */
        char *date = strrchr(word, ':');

        if (date) {
            *date = '\0';
        }
        h = dmn_choose_mix(h, word);
    }
    return h;
}

void dmn_choose_classes(struct dmn_choose *c)
{
    for (size_t k = 0; k < c->kind_count; k++) {
        c->kinds[k].class = class_of(c, k);
    }
}

static void describe(const struct dmn_choose *c, struct key *k)
{
    *k = (struct key){0};
    for (size_t i = 0; i < c->kind_count; i++) {
        char core[256];

        if (c->kinds[i].same == i) {
            describe_core(base_max(c->kinds[i].cpu, 0), core, sizeof(core));
            base_append(k->cpu, sizeof(k->cpu), "%.*s:%s%x;", (int)PL_EP_NAME_MAX, c->kinds[i].name,
                        core, krn_cpu_features());
        }
    }
    dl_iterate_phdr(add_library, k);
    describe_table(k->table, sizeof(k->table));
    snprintf(k->wanted, sizeof(k->wanted), "%s%s-%zu",
             c->options.objective == KRN_MEMORY ? "memory" : "latency",
             c->options.exact ? "" : "-inexact", c->options.packed_bytes_max);
}

/* Return: row @name of operator @op, if it can run it and is as exact as is wanted; else NULL. */
static const struct krn_primitive *named(const struct dmn_choose *c, const struct mdl_model *m,
                                         size_t op, json_t *name, bool fused)
{
    const struct krn_primitive *v =
        json_is_string(name) ? krn_primitive_find(json_string_value(name)) : NULL;

    return v && v->fused == fused && !(v->inexact && c->options.exact) && krn_usable(v, m, op)
               ? v
               : NULL;
}

/* Reads one operator, [own, fused or null, ns]. In an outdated choice, a primitive that does not
 * fit leaves the static preference. Return: it is one. */
static bool read_op(const struct dmn_choose *c, const struct mdl_model *m, size_t i, json_t *entry,
                    struct krn_chosen *ret)
{
    json_t *own = json_array_get(entry, 0), *fused = json_array_get(entry, 1);
    const struct krn_primitive *v = named(c, m, i, own, false);
    json_t *time = json_array_get(entry, 2);
    double ns = json_number_value(time);

    ret->choice.own[i] = v || !c->outdated ? v : ret->choice.own[i];
    ret->choice.fused[i] = named(c, m, i, fused, true);
    ret->op_ns[i] = ns;
    ret->ns += ns;
    return ret->choice.own[i] && json_is_string(own) && json_is_number(time) &&
           (ret->choice.fused[i] || json_is_null(fused) ||
            (c->outdated && json_is_string(fused))) &&
           !(i > 0 && ret->choice.fused[i] && ret->choice.fused[i - 1]) && isfinite(ns) &&
           ns >= 0 && ns <= NS_MAX;
}

/* Reads what several frames at once gain. Return: it is known of every operator that can; NULL: it
 * is not, or there is no such operator. */
static double (*read_gains(const struct mdl_model *m, const struct krn_choice *choice,
                           json_t *list))[KRN_AT_ONCE]
{
    double(*ret)[KRN_AT_ONCE] = NULL;

    if (!krn_at_once_any(m, choice) || !(ret = calloc(m->op_count, sizeof(*ret)))) {
        return NULL;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        json_t *gains = json_array_get(json_array_get(list, i), 3);
        bool can = krn_at_once_gains(m, choice, i);

        for (size_t b = 0; b < KRN_AT_ONCE; b++) {
            double f = can ? json_number_value(json_array_get(gains, b)) : 1;

            if (!(f > 0) || !isfinite(f)) {
                free(ret);
                return NULL;
            }
            ret[i][b] = f;
        }
    }
    return ret;
}

static int read_kind(const struct dmn_choose *c, const struct mdl_model *m, json_t *list,
                     struct krn_chosen *ret)
{
    if (json_array_size(list) != m->op_count) {
        return c->outdated ? DMN_CHOOSE_E_OTHER_OPS : -EBADMSG;
    }
    if (krn_choice_prefer(m, NULL, &ret->choice) < 0 ||
        !(ret->op_ns = calloc(m->op_count + 1, sizeof(*ret->op_ns)))) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        if (!read_op(c, m, i, json_array_get(list, i), ret)) {
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
            json_t *list = json_object_get(kinds, c->kinds[k].name);

            r = read_kind(c, m, list, &c->of[k]);
            c->at_once[k] = r == 0 ? read_gains(m, &c->of[k].choice, list) : NULL;
        }
    }
    for (size_t k = 0; r != 0 && k < c->kind_count; k++) {
        krn_chosen_deinit(&c->of[k]);
        free(c->at_once[k]);
        c->at_once[k] = NULL;
    }
    return r;
}

/* Return: what has changed since the saved choice was made; NULL: nothing. */
static const char *outdated(json_t *root, const struct key *key)
{
    const struct {
        const char *name, *now, *text;
    } parts[] = {{"cpu", key->cpu, "another CPU"},
                 {"libraries", key->libraries, "other libraries"},
                 {"table", key->table, "another version of piped"},
                 {"wanted", key->wanted, "another objective"}};

    for (size_t i = 0; i < base_array_count(parts); i++) {
        const char *then = json_string_value(json_object_get(root, parts[i].name));

        if (!then || strcmp(then, parts[i].now) != 0) {
            return parts[i].text;
        }
    }
    return NULL;
}

/* What a call asked for holds for later loads, too. */
static void take_wanted(json_t *root, struct krn_choose_options *o)
{
    const char *wanted = json_string_value(json_object_get(root, "wanted"));
    const char *packed = wanted ? strrchr(wanted, '-') : NULL;

    if (packed) {
        o->objective = strncmp(wanted, "memory", strlen("memory")) == 0 ? KRN_MEMORY : KRN_LATENCY;
        o->exact = strstr(wanted, "-inexact") == NULL;
        o->packed_bytes_max = strtoull(packed + 1, NULL, 10);
    }
}

int dmn_choose_read(struct dmn_choose *c, const struct mdl_model *m, const char *name)
{
    base_autofree struct key *key = malloc(sizeof(*key));
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;
    int r;

    if (!key || !dmn_state_file_path(DMN_STATE_CHOICE, c->folder, m->identity, name, path) ||
        dmn_state_file_read(DMN_STATE_CHOICE, path, m->identity, &root) != 0) {
        return -ENOENT;
    }
    take_wanted(root, &c->options);
    describe(c, key);
    c->outdated = outdated(root, key);
    c->doubt = json_number_value(json_object_get(root, "doubt"));
    c->doubt = c->doubt > DMN_CHOOSE_DOUBT && c->doubt <= 1 ? c->doubt : 0;
    r = json_is_object(json_object_get(root, "kinds")) ? read_kinds(c, m, root) : -EBADMSG;
    json_decref(root);
    if (r < 0) {
        c->outdated = NULL;
        c->doubt = 0;
    }
    if (r == -EBADMSG) {
        snprintf(c->note, sizeof(c->note),
                 "ignoring %.180s: not a saved choice of primitives; measuring again", path);
    }
    return r < 0 ? -ENOENT : r;
}

static json_t *kind_json(const struct mdl_model *m, const struct krn_chosen *of,
                         const double (*gains)[KRN_AT_ONCE])
{
    json_t *list = json_array();

    for (size_t i = 0; i < of->choice.op_count; i++) {
        const struct krn_primitive *fused = of->choice.fused[i];

        json_t *entry = json_pack("[s, o, f]", of->choice.own[i]->name,
                                  fused ? json_string(fused->name) : json_null(), of->op_ns[i]);

        if (gains && krn_at_once_gains(m, &of->choice, i)) {
            json_array_append_new(entry,
                                  json_pack("[f, f, f]", gains[i][0], gains[i][1], gains[i][2]));
        }
        json_array_append_new(list, entry);
    }
    return list;
}

void dmn_choose_write(struct dmn_choose *c, const struct mdl_model *m, const char *name)
{
    base_autofree struct key *key = malloc(sizeof(*key));
    char path[DMN_STATE_PATH_MAX];
    json_t *kinds;
    int r;

    if (!key || !dmn_state_file_path(DMN_STATE_CHOICE, c->folder, m->identity, name, path)) {
        return;
    }
    describe(c, key);
    kinds = json_object();
    for (size_t k = 0; k < c->kind_count; k++) {
        if (c->kinds[k].same == k) {
            json_object_set_new(
                kinds, c->kinds[k].name,
                kind_json(m, &c->of[k], (const double(*)[KRN_AT_ONCE])c->at_once[k]));
        }
    }
    r = dmn_state_file_write(DMN_STATE_CHOICE, path, m->identity,
                             json_pack("{s:s, s:s, s:s, s:s, s:f, s:o}", "cpu", key->cpu,
                                       "libraries", key->libraries, "table", key->table, "wanted",
                                       key->wanted, "doubt", c->doubt, "kinds", kinds));
    if (dmn_state_untold(r)) {
        snprintf(c->note, sizeof(c->note), "cannot keep the choice of primitives in %.150s: %s",
                 path, strerror(-r));
    }
}
