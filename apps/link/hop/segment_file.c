/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/hop/segment_file.h"

#include "apps/link/common/daemon_call.h"
#include "apps/link/route/route.h"
#include "apps/link/weights/fetch.h"
#include "base/base.h"

/* One search at a time for each segment. */
struct search {
    struct segment_file file;
    void (*found)(void *arg, int status, const char *path_or_why);
    void (*fetched)(void *arg, int status, const char *path_or_why);
    void *arg;
};

/* No file here: its head has one. */
static void fetch(const struct search *s)
{
    struct link *l = s->file.link;
    int rc;

    if (s->file.head == LINK_SELF) {
        s->found(s->arg, PIPED_NOT_FOUND, "this board has no file of that model");
        return;
    }
    rc = fetch_begin(l, s->file.head, s->file.identity, s->file.leaves, s->fetched, s->arg);
    if (rc < 0) {
        s->found(s->arg, rc == -EINVAL ? PIPED_INVALID_ARGUMENT : PIPED_RESOURCE_EXHAUSTED,
                 rc == -EINVAL ? "the plan names leaves that are none" : "out of memory");
    }
}

/* A loaded model that is the same file. */
static void listed(void *arg, const char *error, const json_t *parameters)
{
    base_autofree struct search *s = arg;
    const json_t *list = json_object_get(parameters, "models"), *m;
    char identity[BRD_KEY_TEXT_BYTES];
    size_t i;

    brd_key_text(s->file.identity, identity);
    json_array_foreach(error ? NULL : list, i, m)
    {
        const char *hash = json_string_value(json_object_get(m, "hash"));
        const char *path = json_string_value(json_object_get(m, "path"));

        if (hash && path && strcmp(hash, identity) == 0) {
            s->found(s->arg, 0, path);
            return;
        }
    }
    fetch(s);
}

void segment_file_find(const struct segment_file *f,
                       void (*found)(void *arg, int status, const char *path_or_why),
                       void (*fetched)(void *arg, int status, const char *path_or_why), void *arg)
{
    const char *path = f->head == LINK_SELF ? route_path(f->link, f->identity) : NULL;
    const char *folder = f->link->models_folder;
    char identity[BRD_KEY_TEXT_BYTES], own[1024];
    struct search *search;

    brd_key_text(f->identity, identity);
    snprintf(own, sizeof(own), "%s/%s.onnx", folder ? folder : "", identity);
    if (path || (folder && access(own, R_OK) == 0)) {
        found(arg, 0, path ? path : own);
        return;
    }
    search = malloc(sizeof(*search));
    if (search) {
        *search = (struct search){*f, found, fetched, arg};
    }
    if (!search || daemon_conn_call(f->conn, "io.piped.Models", NULL, false, listed, search) < 0) {
        free(search);
        found(arg, PIPED_UNAVAILABLE, "the daemon is not there");
    }
}
