/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/state_seal.h - the checksum of a state file
 *
 * The last member of the file's JSON object is its seal: "checksum", with the BLAKE2b-256 of every
 * byte before that member, as hex. The file is JSON with and without it. A seal finds damage; it
 * does not prove who wrote the file. Threads: any; plain functions.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DMN_SEAL_KEY "checksum"

/** dmn_seal_json() - dumps an object with its seal. @flags: of jansson. @root: a non-empty object,
 * borrowed. Return: owned by the caller (free); NULL: out of memory. */
char *dmn_seal_json(const json_t *root, size_t flags);
/** dmn_seal_check() - Return: NULL: the seal fits; else what is wrong, a phrase for people. */
const char *dmn_seal_check(const char *text, size_t bytes);
