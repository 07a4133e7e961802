/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/log.h - what piped-http says of itself: a line on standard error. Threads: any. */
#pragma once

void web_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
