/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/base64.h - bytes as text in JSON (RFC 4648, section 4, with padding). Pure; any thread. */
#pragma once

#include <stddef.h>

/** ipc_base64_length() - Return: characters for @bytes bytes, without a NUL. */
static inline size_t ipc_base64_length(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}
/** ipc_base64_encode() - @ret: ipc_base64_length(@bytes) + 1 characters, with a NUL. */
void ipc_base64_encode(const void *data, size_t bytes, char *ret);
/** ipc_base64_decode() - decodes @text of @length characters. @ret: room for @length / 4 * 3 bytes.
 * Return: bytes; SIZE_MAX: it is not base64. */
size_t ipc_base64_decode(const char *text, size_t length, void *ret);
