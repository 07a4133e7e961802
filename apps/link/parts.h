/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/parts.h - the parts of piped-link: made, connected, and freed */
#pragma once

#include "apps/link/args.h"
#include "apps/link/common/link.h"

/** link_parts_read() - reads keys and boards. Return: 0 or an exit code, said. */
int link_parts_read(const struct link_args *a, struct link *l, struct brd_keys *keys);
/** link_parts_make() - all but the transport. Return: 0 or an exit code, said. */
int link_parts_make(const struct link_args *a, struct link *l);
/** link_parts_connect() - opens the transport. Return: 0 or an exit code, said. */
int link_parts_connect(const struct link_args *a, struct link *l, const struct brd_keys *keys);
/** link_parts_free() - frees what was made. */
void link_parts_free(struct link *l);
