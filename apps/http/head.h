/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/head.h - the head of a request: nothing that two servers could read in two ways
 *
 * libmicrohttpd is lenient: it takes the first of two lengths, joins folded lines, takes a bare LF
 * for the end of a line, cuts the target at a NUL. A proxy in front may read such a request in
 * another way, and then the two disagree where the next one begins. Here it is refused.
 *
 * Threads: any.
 */
#pragma once

#include "apps/http/web.h"

/** web_head_strictness() - for MHD_OPTION_STRICT_FOR_CLIENT. Where web_head_doubt() knows how the
 * head is kept, it refuses more than libmicrohttpd would, and says why. */
int web_head_strictness(void);

/** web_head_target_of() - @text: the target as it came, before libmicrohttpd cuts and unescapes it.
 * Return: what web_head_doubt() needs of it. */
struct web_target web_head_target_of(const char *text);

/** web_head_doubt() - @method, @version: as libmicrohttpd passed them. Return: what is ambiguous;
 * the connection must be closed then. NULL: nothing is. */
const char *web_head_doubt(const struct web_request *q, const char *method, const char *version);

/** web_head_number() - Return: @text is digits alone, of at most @most, which is *@ret. */
bool web_head_number(const char *text, uint64_t most, uint64_t *ret);

/**
 * web_head_target() - splits "http://HOST:PORT/PATH", which proxies and some clients send
 *
 * @ret_host: WEB_HOST_BYTES; "": @target is a path alone.
 *
 * Return: the path, borrowed from @target; NULL: it is neither a path nor such an address.
 */
const char *web_head_target(const char *target, char *ret_host);

/** web_head_host() - cuts ":PORT" off. @ret: WEB_HOST_BYTES, an address in brackets with them.
 * Return: false: it is not HOST or HOST:PORT. */
bool web_head_host(const char *authority, char *ret);

/** web_head_unescape() - an unescape callback of libmicrohttpd. What would end the text (%00), or
 * make one part of a path look like two (%2F), stays as it is. */
size_t web_head_unescape(void *arg, struct MHD_Connection *http, char *text);
