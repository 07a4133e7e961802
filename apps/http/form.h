/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/form.h - a file in a body of multipart/form-data (RFC 7578), as curl -F sends it.
 * Pure. Threads: any. */
#pragma once

#include "apps/http/json.h"

/** web_form_file() - finds the only part of @body. @type: its Content-Type, with the boundary.
 * @ret: what the part holds, borrowed from @body. Return: NULL; else what is wrong. */
const char *web_form_file(const char *body, size_t bytes, const char *type, struct web_span *ret);
