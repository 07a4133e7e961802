/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/infer.h - POST /v2/models/MODEL/infer. Threads: any; waits for the daemon. */
#pragma once

#include "apps/http/web.h"

/** web_infer() - answers a request whose body is there. */
void web_infer(struct web_request *q, struct web_reply *r);
