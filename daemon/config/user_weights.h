/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/user_weights.h - the value of limits.user_weights: "UID=WEIGHT,..."
 *
 * Users are numbers: looking up names may block. Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define DMN_USER_WEIGHT_MAX 1000u

/** dmn_user_weights_ok() - Return: @text is empty or a list of users and weights. */
bool dmn_user_weights_ok(const char *text);
/** dmn_user_weight() - Return: the weight of @uid, 1..DMN_USER_WEIGHT_MAX; 1: @text does not name
 * it. @text: dmn_user_weights_ok(). */
unsigned dmn_user_weight(const char *text, uid_t uid);
