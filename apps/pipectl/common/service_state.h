/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/common/service_state.h - what systemd knows of a daemon that cannot be reached */
#pragma once

#include <stdbool.h>

#define CTL_SERVICE_TEXT_MAX 1024u

/**
 * ctl_service_words() - says in words why nobody answers
 *
 * @shown: what `systemctl show -p Id -p ActiveState -p Result -p StatusText -p NRestarts` printed
 * for the service and its sockets. @ret: the reason, one line. @ret_next: one line more, what to do
 * then, constant; NULL: nothing. Return: whether it says anything. Threads: any.
 */
bool ctl_service_words(const char *shown, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next);
/** ctl_service_state() - asks systemd, if it is there and @socket is the service's. Blocks. Return:
 * as above. */
bool ctl_service_state(const char *socket, char ret[CTL_SERVICE_TEXT_MAX], const char **ret_next);
