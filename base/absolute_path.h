/* SPDX-License-Identifier: Apache-2.0 */
/**
 * absolute_path.h - a file's path from the root, for another process or another working folder
 */
#pragma once

/** absolute_path() - Links stay: a sidecar may be beside one. Return: owned by the caller; NULL
 * with errno: the working folder has no path, or out of memory. */
char *absolute_path(const char *file);
