/* SPDX-License-Identifier: Apache-2.0 */
/** download.h - gets a file by the program curl, and lets only the right one through */
#pragma once

#include <stdbool.h>

#include "apps/pipectl/models/catalogue.h"

/**
 * ctl_download() - writes the file at a URL to @fd, and compares its size and SHA-256
 *
 * Redirects may lead to the URL's own scheme, and from http to https. No byte more than the file's
 * is written. On a terminal, a line on stderr shows how far it is. @name: the file's, in messages.
 * SIGINT, SIGTERM and SIGHUP end it: see ctl_download_signals(). Return: an exit code; the reason
 * was printed, and what @fd has is of no use.
 */
int ctl_download(const struct ctl_source *source, const char *name, int fd);

/** ctl_is_source() - Return: the file @name in @folder is there, and is what the source says. */
bool ctl_is_source(const struct ctl_source *source, int folder, const char *name);

/** ctl_download_signals() - from now on these signals only end a download, so that its caller can
 * clean up. ctl_download_ended() - Return: one of them came. */
void ctl_download_signals(void);
bool ctl_download_ended(void);
