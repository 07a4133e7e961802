/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/weights/source.h"

#include "base/base.h"

#define SLICE_LEAVES 8u /* hashed at a time, before others have their turn */
#define HASHED_MAX 3u   /* a file that changes under our hands is given up */

/* ---- on the thread ---- */

static int read_leaf(const struct fetch_source *s, size_t leaf, uint8_t *to)
{
    size_t bytes = mdl_leaf_bytes(&s->leaves, leaf), have = 0;

    while (have < bytes) {
        ssize_t n =
            pread(s->fd, to + have, bytes - have, (off_t)(leaf * MDL_HASH_LEAF_BYTES + have));

        if (n == 0 || (n < 0 && errno != EINTR)) {
            return n < 0 ? -errno : -EBADMSG;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int open_source(struct fetch_source *s)
{
    struct stat st;

    base_close_fd(&s->fd);
    mdl_leaves_deinit(&s->leaves);
    s->fd = open(s->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return -EINVAL;
    }
    if ((uint64_t)st.st_size > (LNK_LEAF_BYTES / MDL_HASH_BYTES - 1) * MDL_HASH_LEAF_BYTES) {
        return -E2BIG; /* its list would be more than a leaf */
    }
    return mdl_leaves_new((size_t)st.st_size, &s->leaves);
}

static void refuse(struct fetch_source *s, const char *why)
{
    s->outcome = FETCH_REFUSED;
    snprintf(s->why, sizeof(s->why), "%.160s: %s", s->path, why);
}

static void settle(struct fetch_source *s)
{
    uint8_t bytes[LNK_HASH_BYTES];
    char hash[65];

    mdl_leaves_hash(&s->leaves, hash);
    sodium_hex2bin(bytes, sizeof(bytes), hash, 64, NULL, NULL, NULL);
    if (memcmp(bytes, s->identity, sizeof(bytes)) == 0) {
        s->outcome = FETCH_READY;
    } else {
        refuse(s, "the file has changed since the model was loaded");
    }
}

static bool run_hash(struct job *j)
{
    struct fetch_source *s = (struct fetch_source *)j;
    base_autofree uint8_t *data = malloc(MDL_HASH_LEAF_BYTES);
    int r = !data ? -ENOMEM : s->hashed == 0 ? open_source(s) : 0;

    for (size_t n = 0; r == 0 && n < SLICE_LEAVES && s->hashed < s->leaves.count; n++) {
        struct mdl_hash h;

        r = read_leaf(s, s->hashed, data);
        mdl_hash_init(&h);
        mdl_hash_update(&h, data, r == 0 ? mdl_leaf_bytes(&s->leaves, s->hashed) : 0);
        mdl_hash_end(&h, s->leaves.hashes[s->hashed++]);
    }
    if (r < 0) {
        refuse(s, strerror(-r));
        return false;
    }
    if (s->hashed < s->leaves.count) {
        return true;
    }
    settle(s);
    return false;
}

static bool run_read(struct job *j)
{
    struct fetch_reading *r = (struct fetch_reading *)j;

    r->bytes = mdl_leaf_bytes(&r->source->leaves, r->leaf);
    r->data = malloc(r->bytes + 1);
    r->ok = r->data && read_leaf(r->source, r->leaf, r->data) == 0 &&
            mdl_leaf_ok(&r->source->leaves, r->leaf, r->data, r->bytes);
    return false;
}

/* ---- on the loop ---- */

static void hash_done(struct job *j)
{
    struct fetch_source *s = (struct fetch_source *)j;

    s->state = s->outcome;
}

void fetch_source_hash(struct fetch_source *s, struct jobs *jobs)
{
    s->hashed = 0;
    s->outcome = FETCH_REFUSED;
    if (++s->times > HASHED_MAX) {
        refuse(s, "the file changes");
        s->state = FETCH_REFUSED;
        return;
    }
    s->state = FETCH_HASHING;
    s->job = (struct job){.run = run_hash, .done = hash_done};
    jobs_add(jobs, &s->job);
}

struct fetch_source *fetch_source_new(const uint8_t identity[LNK_HASH_BYTES], const char *path)
{
    struct fetch_source *s = calloc(1, sizeof(*s));
    char *copy = strdup(path);

    if (!s || !copy) {
        free(s);
        free(copy);
        return NULL;
    }
    s->fd = -1;
    s->path = copy;
    memcpy(s->identity, identity, sizeof(s->identity));
    return s;
}

struct fetch_source *fetch_source_free(struct fetch_source *s)
{
    base_close_fd(&s->fd);
    mdl_leaves_deinit(&s->leaves);
    free(s->path);
    free(s);
    return NULL;
}

void fetch_source_read(struct fetch_reading *r, struct jobs *jobs)
{
    r->job.run = run_read;
    r->source->readers++;
    jobs_add(jobs, &r->job);
}
