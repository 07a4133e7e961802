/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/model_copies_private.h - what model_copies.c and sent_files.c share
 *
 * Threads: any.
 */
#pragma once

#define DMN_COPIES_LOADED "loaded"
#define DMN_COPIES_SAVED "saved"
#define DMN_COPY_ENDING ".XXXXXX" /* of a copy's folder, behind its model's name: mkdtemp(3) */

/** dmn_copies_folder() - Return: the folder @place of the state directory, from the root, owned by
 * the caller; NULL: there is no state directory, or no memory. */
char *dmn_copies_folder(const char *state_dir, const char *place);
/** dmn_copy_remove() - removes a folder with all that is in it; blocks. */
void dmn_copy_remove(const char *folder);
