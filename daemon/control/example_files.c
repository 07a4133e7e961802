/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/example_files.h"

#include <sys/mman.h>

struct dmn_examples *dmn_examples_free(struct dmn_examples *e)
{
    if (e) {
        krn_examples_deinit(&e->set);
        if (e->map) {
            munmap(e->map, e->map_bytes);
        }
        free(e);
    }
    return NULL;
}

/* Maps sealed memory, which nobody can change or shrink. Return: NULL, or the reason for
 * refusing. */
static const char *map(struct dmn_examples *e, int fd)
{
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (fd < 0) {
        return "the call has no file descriptor with the examples";
    }
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) == 0 ||
        fstat(fd, &st) < 0) {
        return "the examples must be in a memfd that is sealed against writing and shrinking";
    }
    if (st.st_size <= 0 || (uint64_t)st.st_size > DMN_EXAMPLES_BYTES_MAX) {
        return "the examples have no bytes, or more than 2 GiB";
    }
    e->map_bytes = (size_t)st.st_size;
    e->map = mmap(NULL, e->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (e->map == MAP_FAILED) {
        e->map = NULL;
        return "cannot map the examples";
    }
    return NULL;
}

static const char *list(struct dmn_examples *e, const json_t *examples)
{
    size_t i, at = 0;
    json_t *entry;

    json_array_foreach((json_t *)(uintptr_t)examples, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_int_t bytes = json_integer_value(json_object_get(entry, "bytes"));

        if (!name || bytes < 0 || (uint64_t)bytes > e->map_bytes - at) {
            return "an example has no name, or fewer bytes than it says";
        }
        if (krn_examples_add(&e->set, name, (const uint8_t *)e->map + at, (size_t)bytes, false) <
            0) {
            return "too many examples";
        }
        at += (size_t)bytes;
    }
    return e->set.count ? NULL : "the call has no examples";
}

struct dmn_examples *dmn_examples_take(struct dmn_call *c)
{
    struct dmn_examples *e = calloc(1, sizeof(*e));
    base_autoclose int fd = dmn_call_take_fd(c);
    const char *why = e ? map(e, fd) : "out of memory";

    why = why ? why : list(e, json_object_get(c->parameters, "examples"));
    if (why) {
        dmn_call_error(c, "Unsupported", "why", why);
        return dmn_examples_free(e);
    }
    return e;
}
