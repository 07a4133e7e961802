/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tuner/pipesim/report.h"

int psim_case_init(struct psim_report *r, const char *network, const char *platform, bool layers,
                   struct psim_case *ret)
{
    int error = psim_platform_load(platform, r->error, &ret->platform);

    if (!error) {
        error = psim_network_load(network, layers, r->error, &ret->network);
    }
    if (!error && (error = psim_problem(&ret->network, &ret->platform, &ret->truth)) != 0) {
        snprintf(r->error, sizeof(r->error), "%s on %s: %s", network, platform, strerror(-error));
        psim_network_deinit(&ret->network);
    }
    return error;
}

void psim_case_deinit(struct psim_case *c)
{
    tun_problem_deinit(&c->truth);
    psim_network_deinit(&c->network);
}

int psim_case_run(struct psim_report *r, const struct psim_case *c, const char *algorithm,
                  const struct tun_options *o, struct psim_run *ret)
{
    struct psim_machine machine = {.truth = &c->truth, .random.state = r->seed};
    struct tun_options options = o ? *o : (struct tun_options){0};

    options.seed = r->seed;
    for (size_t k = 0; k < PL_EP_MAX; k++) {
        machine.slow[k] = 1;
    }
    return psim_run(algorithm, &c->truth, &options, &machine, r->error, ret);
}
