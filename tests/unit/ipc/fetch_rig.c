/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/fetch_rig.h"

char folder[] = "/tmp/piped-fetch-XXXXXX";
struct leaf_file file[FILES];
bool routed[FILES];

const char *links_path(const struct link *l, const uint8_t identity[LNK_HASH_BYTES])
{
    for (size_t i = 0; i < FILES; i++) {
        if (l == &node[0].link && routed[i] && memcmp(identity, file[i].identity, 32) == 0) {
            return file[i].path;
        }
    }
    return NULL;
}

void done(void *arg, int status, const char *path_or_why)
{
    struct goal *g = arg;

    g->times++;
    g->status = status;
    snprintf(g->said, sizeof(g->said), "%s", path_or_why);
}

int begin(size_t board, const struct leaf_file *f, const char *leaves, struct goal *g)
{
    *g = (struct goal){0};
    return fetch_begin(&node[board].link, 0, f->identity, leaves, done, g);
}

void run(const struct goal *g)
{
    for (int i = 0; i < TURNS && g->times == 0; i++) {
        links_turn();
    }
}

int marked(const char *path)
{
    struct mdl_leaves l = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC), count = -1;
    size_t bad;

    if (fd >= 0 && mdl_leaves_file_read(path, &l) == 0 &&
        mdl_leaves_check_file(fd, &l, 1, &bad) == 0) {
        count = 0;
        for (size_t i = 0; i < l.count; i++) {
            count += l.present[i];
        }
    }
    mdl_leaves_deinit(&l);
    base_close_fd(&fd);
    return count;
}

void start(uint64_t bytes_max)
{
    for (size_t i = 0; i < FILES; i++) {
        routed[i] = true;
    }
    links_begin(folder, bytes_max);
}

void finish(void)
{
    links_end();
    for (size_t i = 0; i < NODES; i++) {
        char path[300];

        snprintf(path, sizeof(path), "%s/%zu", folder, i);
        leaf_remove_all(path);
    }
}
