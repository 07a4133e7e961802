/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/route_text.h - which boards serve which units, as people write it
 *
 * FIRST-LAST@BOARD*SHARE+BOARD*SHARE|FIRST-LAST@BOARD|..., from unit 0 on without a gap. BOARD is a
 * name of `pipectl board list`, or "here". SHARE of the frames is 1 to 1000, 1 if it is absent. No
 * board is in a hop twice.
 *
 * Threads: any; pure functions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Other values of the key models[].boards. */
#define DMN_BOARDS_OFF "off"
#define DMN_BOARDS_AUTO "auto"
#define DMN_BOARD_HERE "here"

#define DMN_ROUTE_HOPS_MAX 16u   /* as BRD_HOPS_MAX */
#define DMN_ROUTE_BOARDS_MAX 8u  /* of a hop; as BRD_SHARE_MAX */
#define DMN_ROUTE_NAME_BYTES 32u /* as BRD_NAME_BYTES */
#define DMN_ROUTE_SHARE_MAX 1000u
#define DMN_ROUTE_ERROR_MAX 160u

struct dmn_route_text {
    size_t hop_count;
    struct {
        uint32_t first_unit, last_unit;
        size_t board_count;
        struct {
            char name[DMN_ROUTE_NAME_BYTES];
            uint32_t share;
        } board[DMN_ROUTE_BOARDS_MAX];
    } hop[DMN_ROUTE_HOPS_MAX];
};

/** dmn_route_text_parse() - @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0; -EINVAL with @why set. */
int dmn_route_text_parse(const char *text, char *why, struct dmn_route_text *ret);
