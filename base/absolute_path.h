/* SPDX-License-Identifier: Apache-2.0 */
/**
 * absolute_path.h - a file's path from the root, for another process or another working folder
 */
#pragma once

/** absolute_path() - symbolic links are not resolved: a model's sidecar may lie beside the link.
 * Return: owned; NULL with errno: the working folder has no path, or out of memory. */
char *absolute_path(const char *file);
