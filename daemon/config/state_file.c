/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/state_file.h"

#include <stdatomic.h>

#include "base/base.h"
#include "base/json_text.h"
#include "base/leaves/leaves.h"
#include "base/whole_file.h"
#include "daemon/service/folders.h"
#include "daemon/service/log.h"
#include "ipc/json_memory.h"

const struct dmn_state_row dmn_state_rows[DMN_STATE_FILE_COUNT] = {
    [DMN_STATE_MODEL] = {.form = "model-HASH-NAME.v3.json",
                         .version = 3,
                         .bytes_max = 16 << 20,
                         .json_flags = JSON_COMPACT | JSON_REAL_PRECISION(9),
                         .then = "times and plan of the model are learned again"},
    [DMN_STATE_CHOICE] = {.form = "choice-HASH-NAME.v2.json",
                          .version = 2,
                          .bytes_max = 16 << 20,
                          .json_flags = JSON_COMPACT | JSON_REAL_PRECISION(9),
                          .then = "measuring the primitives again"},
    [DMN_STATE_RANGES] = {.form = "calibration-NAME.v2.json",
                          .former = "calibration-NAME.v1.json",
                          .version = 2,
                          .bytes_max = 16 << 20,
                          .json_flags = JSON_INDENT(1) | JSON_REAL_PRECISION(9),
                          .then = "the model is not quantised as before; see pipectl quantize"},
    [DMN_STATE_PROFILE] = {.form = "calibration.json",
                           .version = 2,
                           .bytes_max = 1 << 20,
                           .json_flags = JSON_INDENT(1) | JSON_REAL_PRECISION(17),
                           .then = "the cores have no profile; see pipectl profile"},
    [DMN_STATE_SAVED] = {.form = "models.v2.json",
                         .former = "models.v1.json",
                         .version = 2,
                         .bytes_max = 1 << 20,
                         .json_flags = JSON_INDENT(1),
                         .then = "saved models are left out; see pipectl models load --save"},
};

/* ---- the lock ---- */

#define LOCK_NAME "state.lock"

static int lock_fd = -1;   /* owned by the loop thread */
static _Atomic bool taken; /* written by the loop thread */

int dmn_state_lock(const char *folder, pid_t *ret_holder)
{
    int error = dmn_folder_lock(folder, LOCK_NAME, &lock_fd, ret_holder);

    atomic_store_explicit(&taken, error == -EADDRINUSE, memory_order_relaxed);
    return error;
}

void dmn_state_unlock(void)
{
    base_close_fd(&lock_fd);
    atomic_store_explicit(&taken, false, memory_order_relaxed);
}

bool dmn_state_taken(void)
{
    return atomic_load_explicit(&taken, memory_order_relaxed);
}

bool dmn_state_untold(int error)
{
    return error < 0 && error != -EBUSY;
}

const char *dmn_state_why(int error)
{
    return error == -ENOENT    ? "the daemon has no state directory; its log says why"
           : error == -EBUSY   ? "another daemon keeps the state directory"
           : error == -EBADMSG ? "the file there is damaged; pipectl reload says more"
                               : strerror(-error);
}

/* ---- paths ---- */

bool dmn_state_file_path(enum dmn_state_file file, const char *folder, const char *identity,
                         const char *name, char ret[DMN_STATE_PATH_MAX])
{
    const char *form = dmn_state_rows[file].form;
    bool fits = folder;

    ret[0] = '\0';
    base_append(ret, DMN_STATE_PATH_MAX, "%s/", folder ? folder : "");
    while (*form) {
        const char *word = strncmp(form, "HASH", 4) == 0   ? identity
                           : strncmp(form, "NAME", 4) == 0 ? name
                                                           : NULL;

        fits &= base_append(ret, DMN_STATE_PATH_MAX, "%.*s", word ? -1 : 1, word ? word : form);
        form += word ? 4 : 1;
    }
    return fits;
}

/* ---- the seal
 *
 * The last member of a state file's JSON object is its seal, with the BLAKE2b-256 of every byte
 * before that member, as hex. The file is JSON with and without it. A seal finds damage; it does
 * not prove who wrote the file. ---- */

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

/* Return: NULL: the seal fits; else what is wrong, a phrase for people. */
static const char *check_seal(const char *text, size_t bytes)
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

/* ---- read ---- */

/* @sealed: false: of the format before checksums. Return: 0; -errno;
 * DMN_STATE_E_BAD with *ret_why. */
static int read_object(const struct dmn_state_row *row, const char *path, bool sealed, json_t **ret,
                       const char **ret_why)
{
    const struct whole_file file = {.folder = AT_FDCWD, .path = path, .bytes_max = row->bytes_max};
    base_autofree char *text = NULL;
    json_error_t error;
    size_t bytes = 0;
    json_t *root;
    int r = whole_file_read(&file, &text, &bytes);

    if (r > 0) {
        *ret_why = whole_file_why(r);
        return DMN_STATE_E_BAD;
    }
    if (r < 0) {
        return r;
    }
    *ret_why = sealed ? check_seal(text, bytes) : NULL;
    root = *ret_why ? NULL : json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && !*ret_why && json_error_code(&error) == json_error_out_of_memory) {
        return -ENOMEM;
    }
    if (!json_is_object(root)) {
        *ret_why = *ret_why ? *ret_why : "it is not a JSON object";
        json_decref(root);
        return DMN_STATE_E_BAD;
    }
    json_object_del(root, DMN_SEAL_KEY); /* who changes the object writes another one */
    *ret = root;
    return 0;
}

/* Renames the file, and says what becomes of it. */
static void set_aside(const struct dmn_state_row *row, const char *path, const char *why)
{
    const char *slash = strrchr(path, '/');
    base_autofree char *aside = NULL;

    if (!dmn_state_taken() && asprintf(&aside, "%s.damaged", path) > 0 &&
        rename(path, aside) == 0) {
        dmn_log(LOG_WARNING, "%s is damaged: %s; kept as %s.damaged, but not used: %s", path, why,
                slash ? slash + 1 : path, row->then);
    } else {
        dmn_log(LOG_WARNING, "%s is damaged: %s; not used: %s", path, why, row->then);
    }
}

static bool is_of(const json_t *root, const char *identity)
{
    const char *of = json_string_value(json_object_get(root, "identity"));

    return !identity || (of && strcmp(of, identity) == 0);
}

static char *former_path(const struct dmn_state_row *row, const char *path)
{
    const char *ending = strrchr(row->form, '.'), *dot = ending;
    char *former = NULL;
    size_t bytes;

    if (!row->former) {
        return NULL;
    }
    while (dot[-1] != '.') { /* ".v2.json" */
        dot--;
    }
    bytes = strlen(path) - strlen(dot);
    return asprintf(&former, "%.*s%s", (int)bytes, path,
                    row->former + (strlen(row->former) - strlen(dot))) < 0
               ? NULL
               : former;
}

static const char other_version[] = "it has another version";

/* Reads the file, or in its place that of the format before checksums, and changes neither.
 * @ret_former: owned by the caller: the path, if it is the latter. Return: as read_object(). */
static int look(const struct dmn_state_row *row, const char *path, const char *identity,
                json_t **ret, char **ret_former, const char **ret_why)
{
    base_autofree char *former = NULL;
    json_t *root = NULL;
    int r = read_object(row, path, true, &root, ret_why);

    former = r == -ENOENT ? former_path(row, path) : NULL;
    if (former) {
        r = read_object(row, former, false, &root, ret_why);
        *ret_former = r == -ENOENT ? NULL : base_take(former);
    } else if (r == 0 && json_integer_value(json_object_get(root, "version")) != row->version) {
        *ret_why = other_version;
        r = DMN_STATE_E_BAD;
    } else if (r == 0 && !is_of(root, identity)) {
        *ret_why = "it is of another model";
        r = DMN_STATE_E_BAD;
    }
    if (r != 0) {
        json_decref(root);
        return r;
    }
    *ret = root;
    return 0;
}

int dmn_state_file_look(enum dmn_state_file file, const char *path, json_t **ret,
                        const char **ret_why)
{
    base_autofree char *former = NULL;
    int r = look(&dmn_state_rows[file], path, NULL, ret, &former, ret_why);

    if (r < 0) {
        *ret_why = strerror(-r);
    }
    return r;
}

/* Writes what the file of the format before checksums holds in the present one. */
static void renew(enum dmn_state_file file, const char *former, const char *path, json_t *root)
{
    int r;

    dmn_log(LOG_NOTICE, "%s has the format of an earlier version; writing it again as %s", former,
            path);
    r = dmn_state_file_write(file, path, NULL, json_deep_copy(root));
    if (r == 0) {
        (void)unlink(former);
    } else if (dmn_state_untold(r)) {
        dmn_log(LOG_WARNING, "cannot write %s: %s", path, strerror(-r));
    }
}

int dmn_state_file_read(enum dmn_state_file file, const char *path, const char *identity,
                        json_t **ret)
{
    const struct dmn_state_row *row = &dmn_state_rows[file];
    base_autofree char *former = NULL;
    const char *why = NULL;
    int r = look(row, path, identity, ret, &former, &why);

    if (r == DMN_STATE_E_BAD && why == other_version) {
        dmn_log(LOG_WARNING, "ignoring %s: it has another version than %d: %s", path, row->version,
                row->then);
    } else if (r == DMN_STATE_E_BAD) {
        set_aside(row, former ? former : path, why);
    } else if (r < 0 && r != -ENOENT) {
        dmn_log(LOG_WARNING, "cannot read %s: %s: %s", path, strerror(-r), row->then);
    } else if (r == 0 && former) {
        renew(file, former, path, *ret);
    }
    return r;
}

/* ---- write ---- */

/* Puts version and identity first. Return: new reference, or NULL. */
static json_t *with_head(const struct dmn_state_row *row, const char *identity, json_t *root)
{
    json_t *whole = json_object();
    int r = json_object_set_new(whole, "version", json_integer(row->version));

    json_object_del(root, "version");
    if (r == 0 && identity) {
        r = json_object_set_new(whole, "identity", json_string(identity));
    }
    if (r == 0) {
        r = json_object_update(whole, root);
    }
    json_decref(root);
    if (r != 0) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

int dmn_state_file_write(enum dmn_state_file file, const char *path, const char *identity,
                         json_t *root)
{
    const struct dmn_state_row *row = &dmn_state_rows[file];
    struct atomic_file f = {.folder = AT_FDCWD, .path = path, .mode = 0600, .synced = true};
    base_autofree char *text = NULL;

    if (dmn_state_taken()) {
        json_decref(root);
        return -EBUSY;
    }
    root = root ? with_head(row, identity, root) : NULL;
    text = root ? dmn_seal_json(root, row->json_flags) : NULL;
    json_decref(root);
    return text ? atomic_file_write(&f, text, strlen(text)) : -ENOMEM;
}

int dmn_state_file_remove(enum dmn_state_file file, const char *path)
{
    struct atomic_file f = {.folder = AT_FDCWD, .path = path};
    base_autofree char *former = former_path(&dmn_state_rows[file], path);

    if (dmn_state_taken()) {
        return -EBUSY;
    }
    if ((unlink(path) < 0 && errno != ENOENT) ||
        (former && unlink(former) < 0 && errno != ENOENT)) {
        return -errno;
    }
    atomic_file_sync_folder(&f);
    return 0;
}

/* ---- later ---- */

struct put {
    struct dmn_job job;
    int error; /* how it went */
    enum dmn_state_file file;
    char *path;
    json_t *root;                                  /* owned; NULL: removes the file */
    int (*change)(const char *path, json_t *with); /* NULL: writes `root` */
    struct dmn_state_kept kept;
};

static void put_run(struct dmn_job *job)
{
    struct put *p = base_container_of(job, struct put, job);

    if (p->change) {
        p->error = p->change(p->path, base_take(p->root));
    } else {
        p->error = p->root ? dmn_state_file_write(p->file, p->path, NULL, base_take(p->root))
                           : dmn_state_file_remove(p->file, p->path);
    }
}

/* A change's owner logs. */
static void tell(const struct put *p, const char *path, int error)
{
    if (!p->change && dmn_state_untold(error)) {
        dmn_log(LOG_WARNING, "cannot keep %s for the next start: %s", path, strerror(-error));
    }
    if (p->kept.fn) {
        p->kept.fn(p->kept.ctx, error);
    }
}

static void put_done(struct dmn_job *job)
{
    struct put *p = base_container_of(job, struct put, job);

    tell(p, p->path, p->error);
    free(p->path);
    free(p);
}

static void give(struct dmn_work *disk, const char *path, const struct put *of)
{
    struct put *p = malloc(sizeof(*p));

    if (p) {
        *p = *of;
        p->job = (struct dmn_job){.run = put_run, .done = put_done};
        p->path = strdup(path);
    }
    if (p && p->path) {
        dmn_work_do(disk, &p->job);
    } else {
        free(p);
        json_decref(of->root);
        tell(of, path, -ENOMEM);
    }
}

void dmn_state_put(struct dmn_work *disk, enum dmn_state_file file, const char *path, json_t *root,
                   struct dmn_state_kept kept)
{
    if (root && !ipc_json_lacked()) {
        give(disk, path, &(struct put){.file = file, .root = root, .kept = kept});
    } else {
        json_decref(root);
        ipc_json_begin(); /* the next file may be whole */
        tell(&(struct put){.kept = kept}, path, -ENOMEM);
    }
}

void dmn_state_drop(struct dmn_work *disk, enum dmn_state_file file, const char *path,
                    struct dmn_state_kept kept)
{
    give(disk, path, &(struct put){.file = file, .kept = kept});
}

void dmn_state_change(struct dmn_work *disk, const char *path,
                      int (*change)(const char *path, json_t *with), json_t *with,
                      struct dmn_state_kept kept)
{
    give(disk, path, &(struct put){.root = with, .change = change, .kept = kept});
}
