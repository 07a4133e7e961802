/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/state_put.h"

#include "base/base.h"
#include "daemon/config/state_lock.h"
#include "daemon/service/log.h"
#include "ipc/json_memory.h"

struct put {
    struct dmn_job job;
    int error; /* how it went */
    enum dmn_state_file file;
    char *path;
    json_t *root; /* owned; NULL: removes the file */
    struct dmn_state_kept kept;
};

static void run(struct dmn_job *job)
{
    struct put *p = base_container_of(job, struct put, job);

    p->error = p->root ? dmn_state_file_write(p->file, p->path, NULL, base_take(p->root))
                       : dmn_state_file_remove(p->file, p->path);
}

static void tell(struct dmn_state_kept kept, const char *path, int error)
{
    if (dmn_state_untold(error)) {
        dmn_log(LOG_WARNING, "cannot keep %s for the next start: %s", path, strerror(-error));
    }
    if (kept.fn) {
        kept.fn(kept.ctx, error);
    }
}

static void done(struct dmn_job *job)
{
    struct put *p = base_container_of(job, struct put, job);

    tell(p->kept, p->path, p->error);
    free(p->path);
    free(p);
}

static void give(struct dmn_work *disk, const char *path, const struct put *of)
{
    struct put *p = malloc(sizeof(*p));

    if (p) {
        *p = *of;
        p->job = (struct dmn_job){.run = run, .done = done};
        p->path = strdup(path);
    }
    if (p && p->path) {
        dmn_work_do(disk, &p->job);
    } else {
        free(p);
        json_decref(of->root);
        tell(of->kept, path, -ENOMEM);
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
        tell(kept, path, -ENOMEM);
    }
}

void dmn_state_drop(struct dmn_work *disk, enum dmn_state_file file, const char *path,
                    struct dmn_state_kept kept)
{
    give(disk, path, &(struct put){.file = file, .kept = kept});
}
