/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/description.h"

#include <stdlib.h>
#include <string.h>

struct dmn_description *dmn_description_new(const char *text)
{
    size_t bytes = strlen(text ? text : "") + 1;
    struct dmn_description *d = malloc(sizeof(*d) + bytes);

    if (d) {
        d->references = 0;
        memcpy(d->text, text ? text : "", bytes);
    }
    return d;
}

void dmn_description_hold(struct dmn_description **at, struct dmn_description *d)
{
    if (d) {
        d->references++;
    }
    if (*at && --(*at)->references == 0) {
        free(*at);
    }
    *at = d;
}
