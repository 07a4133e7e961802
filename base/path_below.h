/* SPDX-License-Identifier: Apache-2.0 */
/**
 * path_below.h - names of files that belong to a model, as paths below its folder, and from the
 * root
 *
 * A model's file, a client or another board names them; whoever opens one asks here first. The
 * normal form has no empty part, no "." and no "..": "./w.bin", "a/../w.bin" and ".//w.bin" are all
 * "w.bin". Links in the folder are the kernel's matter: path_open_below().
 */
#pragma once

#define PATH_BELOW_MAX 1024u /* bytes of a normal form, with the NUL */

/* The sidecar of NAME.onnx is NAME.sidecar.json beside it, of at most so many bytes. */
#define PATH_SIDECAR_ENDING ".sidecar.json"
#define PATH_SIDECAR_BYTES_MAX ((size_t)4 << 20)

enum { PATH_BELOW_E_OUT = 1, PATH_BELOW_E_LONG };

/**
 * path_below() - brings @name into its normal form
 * @ret: PATH_BELOW_MAX bytes
 * Return: 0; PATH_BELOW_E_OUT: it is not a path of a file below the folder; PATH_BELOW_E_LONG: it
 * is too long. Pure.
 */
int path_below(const char *name, char *ret);

/* How a model's file is opened: a fifo must not wait for its writer before it is seen to be one. */
#define PATH_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/** path_open_below() - opens @name, which may be any text, in or below @folder: nothing that leads
 * out of it. Return: owned; -1 with errno, of which EXDEV: it leads out. */
int path_open_below(int folder, const char *name);

/** absolute_path() - a file's path from the root, for another process or another working folder.
 * Symbolic links are not resolved: a model's sidecar may lie beside the link. Return: owned; NULL
 * with errno: the working folder has no path, or out of memory. */
char *absolute_path(const char *file);
