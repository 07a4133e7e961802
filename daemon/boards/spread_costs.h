/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/boards/spread_costs.h - the cost table of spread_problem.h; for its file */
#pragma once

#include "daemon/boards/spread_past.h"
#include "tuner/problem.h"

/* Of each EP of the table. */
struct dmn_spread_ep {
    const char *name;  /* as its board calls it */
    const char *print; /* its board */
    size_t like;       /* the head's EP whose times it has ... */
    double scale;      /* ... times this, until it is known better */
};

/** dmn_spread_costs() - fills @p->costs. @eps: [p->ep_count]; the first are the head's. */
void dmn_spread_costs(struct tun_problem *p, const struct tun_problem *here,
                      const struct dmn_spread_past *past, const struct dmn_spread_ep *eps);
