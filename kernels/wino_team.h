/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/wino_team.h - how a team goes through a convolution by Winograd's algorithm
 *
 * A block of tiles is transformed (v) for a block of input channels, then each panel of outputs
 * passes over it while it stays in cache: its weights are transformed where they were not when
 * packed (u), all points are multiplied (m), and after the last block of channels the results are
 * transformed back. A team shares tiles. Where they are few it transforms the input together, and
 * then shares panels.
 *
 * What is transformed and multiplied is the caller's; this is the order, and who does what. v, u
 * and m follow each other in scratch, sizes are in bytes. Any thread; nothing is kept.
 */
#pragma once

#include "kernels/kernels.h"

struct krn_wino_work {
    size_t tiles;          /* of all images */
    size_t blocks, panels; /* of input channels; of output channels */
    size_t rows;           /* tiles of a group: shares of tiles begin at one */
    size_t tiles_max;      /* of a block */
};

struct krn_wino_layout {
    size_t parts;
    bool by_panels; /* parts share panels of all tiles, instead of tiles */
    size_t tiles;   /* of a block at most */
    size_t v, u, m; /* of one block of channels; of one panel; of one panel: the caller sets them */
    size_t v_count, u_count, m_count;
    size_t m_panels; /* kept at a time */
};

/** krn_wino_layout() - for a team of @width; v, u and m are 0 until the caller sets them. */
struct krn_wino_layout krn_wino_layout(const struct krn_wino_work *w, size_t width);
/** krn_wino_layout_bytes() - scratch for all of it */
size_t krn_wino_layout_bytes(const struct krn_wino_layout *l);

struct krn_wino_job {
    struct krn_wino_work work;
    struct krn_wino_layout layout;
    uint8_t *scratch;
    /* transforms a block of channels of groups of tiles: groups.begin counts from tile @first, the
     * groups are those of @tiles */
    void (*input)(const struct krn_wino_job *j, size_t first, size_t tiles, struct krn_range groups,
                  size_t block, void *v);
    /* adds a block of channels to the products of a panel; the first one sets them */
    void (*multiply)(const struct krn_wino_job *j, size_t block, size_t panel, size_t tiles,
                     const void *v, void *u, void *m);
    /* finishes @tiles from tile @first on */
    void (*output)(const struct krn_wino_job *j, size_t panel, size_t first, size_t tiles,
                   const void *m);
};

/** krn_wino_run() - all of it, on the team of @pool */
void krn_wino_run(struct krn_wino_job *j, pthreadpool_t pool);
