/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/routes.h - what is asked for, and what answers it. Threads: any. */
#pragma once

#include "apps/http/web.h"

/** web_route_find() - @ret_model: 64 bytes, written if the path names one. Return: NULL: @r says
 * why. */
const struct web_route *web_route_find(const char *path, char *ret_model, struct web_reply *r);

/** web_infer() - answers POST /v2/models/MODEL/infer, whose body is there; waits for the daemon. */
void web_infer(struct web_request *q, struct web_reply *r);

/* pages.c */
void web_status(struct web_request *q, struct web_reply *r);
void web_metrics(struct web_request *q, struct web_reply *r);
