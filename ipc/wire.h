/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/wire.h - the codec of the frames protocol: bytes in, messages out
 *
 * The daemon, libpiped, tests and fuzzers share it. Numbers and layouts are in ipc/protocol.h.
 * It does no I/O, keeps no state and allocates nothing. Any thread may call it; the bytes may have
 * any alignment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/protocol.h"

/* A message is its header and its payload's struct, as they are in memory; names are set by
 * ipc_name_set(). */

/* How clients begin to tell the text of an ERROR that comes instead of WELCOME, and of the control
 * socket's NotStarted: the cause, with file, line and key, follows. */
#define IPC_NOT_STARTED "the service failed to start: "

/** ipc_put_error() - writes a whole ERROR with a text, of which what is longer than IPC_TEXT_MAX is
 * left out. Return: bytes of the message. */
size_t ipc_put_error(uint16_t status, const char *text, uint8_t b[IPC_HEADER_BYTES + IPC_TEXT_MAX]);
/** ipc_name_set() - cuts @name to fit, between characters, and pads it with NUL. */
void ipc_name_set(char ret[IPC_NAME_BYTES], const char *name);

/**
 * ipc_get_header() - decodes a header and checks what needs no connection
 *
 * Return: 0; IPC_E_VERSION; IPC_E_TOO_BIG: the payload is longer than its type allows;
 * IPC_E_MALFORMED: unknown type without bit 15, too many fds, or a payload shorter than its type
 * needs. Fills @ret in every case.
 */
enum ipc_outcome { IPC_E_VERSION = 1, IPC_E_TOO_BIG = 2, IPC_E_MALFORMED = 3 };
int ipc_get_header(const uint8_t b[IPC_HEADER_BYTES], struct ipc_header *ret);

/* Decoders read @bytes of payload at @b and ignore what follows the struct.
 *
 * Return: 0; IPC_E_MALFORMED: too short; a text without NUL, not UTF-8 or with control characters;
 * a value out of range; an overflow of offset + bytes; a tensor whose bytes do not fit its shape.
 * Unless it is too short, @ret is filled all the same, so an answer can name the stream. */
int ipc_get_hello(const uint8_t *b, size_t bytes, struct ipc_hello *ret);
int ipc_get_welcome(const uint8_t *b, size_t bytes, struct ipc_welcome *ret);
int ipc_get_open(const uint8_t *b, size_t bytes, struct ipc_open *ret);
int ipc_get_opened(const uint8_t *b, size_t bytes,
                   struct ipc_opened *ret); /* without the tensors that follow */
int ipc_get_tensor(const uint8_t *b, size_t bytes, struct ipc_tensor *ret);
int ipc_get_pool(const uint8_t *b, size_t bytes, struct ipc_pool *ret);
int ipc_get_frame(const uint8_t *b, size_t bytes, struct ipc_frame *ret);
int ipc_get_result(const uint8_t *b, size_t bytes, struct ipc_result *ret);
int ipc_get_credit(const uint8_t *b, size_t bytes, struct ipc_credit *ret);
int ipc_get_event(const uint8_t *b, size_t bytes, struct ipc_event_msg *ret);

/** ipc_dtype_bytes() - Return: bytes of an element; 0: not an enum ipc_dtype. */
size_t ipc_dtype_bytes(uint32_t dtype);
/** ipc_dtype_name() - Return: "f32", "u8", ...; "?": not an enum ipc_dtype. */
const char *ipc_dtype_name(uint32_t dtype);

const char *ipc_status_name(enum ipc_status s); /* "ok", "invalid_argument", ... */
const char *ipc_type_name(uint16_t type);       /* "HELLO", ... or "unknown" */
/** ipc_type_by_client() - Return: a client may send it, if only to be skipped. */
bool ipc_type_by_client(uint16_t type);

/* f16.c: floats as IEEE binary16 and back. Uses the CPU's own conversion if it has one; the results
 * are the same without, but for the bits of a NaN, which stays one. */
/** ipc_f16_encode() - writes @count floats to @halves: to nearest even, and from 65520 on to
 * infinity. */
void ipc_f16_encode(const void *floats, size_t count, void *halves);
/** ipc_f16_decode() - the reverse, exact. */
void ipc_f16_decode(const void *halves, size_t count, void *floats);
