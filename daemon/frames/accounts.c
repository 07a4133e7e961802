/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/accounts.h"
#include "base/base.h"

struct dmn_account *dmn_account_get(struct dmn_accounts *list, uid_t uid)
{
    struct dmn_account *a;

    LIST_FOREACH(a, list, linked) {
        if (a->uid == uid) {
            return a;
        }
    }
    a = calloc(1, sizeof(*a));
    if (a) {
        a->uid = uid;
        LIST_INSERT_HEAD(list, a, linked);
    }
    return a;
}

void dmn_account_trim(struct dmn_accounts *list)
{
    struct dmn_account *a, *next;

    for (a = LIST_FIRST(list); a; a = next) {
        next = LIST_NEXT(a, linked);
        if (a->connections == 0 && a->memory_bytes == 0 && a->inline_bytes == 0) {
            LIST_REMOVE(a, linked);
            free(a);
        }
    }
}
