/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/guard.h - who may ask: tokens, certificates, and pages of other sites. Threads: any
 * after web_guard_load(). */
#pragma once

#include "apps/http/web.h"

/** web_guard_token() - reads the file of the token. @ret: owned. Return: 0; WEB_EXIT_CONFIG, with a
 * message. */
int web_guard_token(const char *path, char **ret);
/** web_guard_tls() - reads certificates and keys and tries them. Return: as web_guard_token(). */
int web_guard_tls(const struct web_options *o, struct web_tls *ret);
/** web_guard_allows() - @open: the request needs no token. Return: false: @r says why not. */
bool web_guard_allows(const struct web_request *q, bool open, struct web_reply *r);
