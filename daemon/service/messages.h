/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/messages.h - journal MESSAGE_IDs, one for each event worth finding or acting on
 *
 * They are part of the interface: an ID never changes and is never reused. `journalctl
 * MESSAGE_ID=...` finds them; systemd/piped.catalog explains them.
 */
#pragma once

#define DMN_MSG_STARTED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c01"
#define DMN_MSG_STOPPED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c02"
#define DMN_MSG_MODEL_LOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c03"
#define DMN_MSG_MODEL_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c04"
#define DMN_MSG_MODEL_UNLOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c05"
#define DMN_MSG_PLAN_CHANGED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c06"
#define DMN_MSG_RETUNE_BEGIN "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c07"
#define DMN_MSG_RETUNE_END "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c08"
#define DMN_MSG_RELOADED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c09"
#define DMN_MSG_RELOAD_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0a"
#define DMN_MSG_CLIENT_REFUSED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0b"
#define DMN_MSG_CLIENT_CLOSED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0c"
#define DMN_MSG_STALLED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0d"
#define DMN_MSG_DRAIN "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0e"
#define DMN_MSG_BLAS "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c0f"
#define DMN_MSG_ADAPTED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c11"
#define DMN_MSG_STARTUP_FAILED "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c10"
#define DMN_MSG_ROUTE "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c12"
#define DMN_MSG_BOARD "1b7e0c7c3b2e4a0f9d1c5f5c8f0a6c13"
