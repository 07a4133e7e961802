/* SPDX-License-Identifier: Apache-2.0 */
/* Without libsystemd: no watchdog, no sockets from the service manager. */
#include "daemon/service/service.h"

#include <errno.h>

uint64_t dmn_service_watchdog_us(void)
{
    return 0;
}

int dmn_service_sockets(struct dmn_inherited *ret)
{
    *ret = (struct dmn_inherited)DMN_INHERITED_NULL;
    return 0;
}

void dmn_service_status(const char *text)
{
}

int dmn_service_journal(int level, const char *text, const char *id, const char *model,
                        const char *plan, const char *client)
{
    return -EOPNOTSUPP;
}
