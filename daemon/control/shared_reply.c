/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/shared_reply.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const char *data, size_t bytes)
{
    char *to = malloc(bytes);

    return to ? memcpy(to, data, bytes) : NULL;
}

bool dmn_shared_copy(const struct dmn_shared_reply *s, uint64_t came_ns, char **ret,
                     size_t *ret_bytes)
{
    char *data = s->data && s->begun_ns > came_ns ? copy(s->data, s->bytes) : NULL;

    if (!data) {
        return false;
    }
    *ret = data;
    *ret_bytes = s->bytes;
    return true;
}

void dmn_shared_keep(struct dmn_shared_reply *s, const char *data, size_t bytes, uint64_t begun_ns)
{
    free(s->data);
    *s = (struct dmn_shared_reply){.data = copy(data, bytes), .bytes = bytes, .begun_ns = begun_ns};
}

void dmn_shared_forget(struct dmn_shared_reply *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(all[i].data);
        all[i] = (struct dmn_shared_reply){0};
    }
}
