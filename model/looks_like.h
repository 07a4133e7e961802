/* SPDX-License-Identifier: Apache-2.0 */
/** model/looks_like.h - what a file that is not an ONNX model is instead */
#pragma once

#include <stddef.h>

/**
 * mdl_looks_like() - recognises a kind of file by its first bytes
 * @data, @bytes: the file, or its beginning (512 bytes are enough)
 * Return: what it is, for "this is ..., not an ONNX model", with what to do about it where that is
 * known; NULL: it may be an ONNX model. Threads: any.
 */
const char *mdl_looks_like(const void *data, size_t bytes);
