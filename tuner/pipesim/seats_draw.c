/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are hard on deadlines. */
#include "base/base.h"
#include "tuner/pipesim/seats_sim.h"

static size_t up_to(uint64_t *random, size_t most)
{
    return (size_t)(base_splitmix64(random) % (most + 1));
}

static void shuffle(uint64_t *random, size_t *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t j = up_to(random, i);

        ret[i] = ret[j];
        ret[j] = i;
    }
}

static unsigned lowest_class_with_deadline(const struct psim_seats *s)
{
    unsigned lowest = UINT_MAX;

    for (size_t m = 0; m < s->models; m++) {
        lowest = s->wishes[m].deadline_ns > 0 ? base_min(lowest, s->wishes[m].class) : lowest;
    }
    return lowest;
}

void psim_seats_draw(uint64_t *io_random, struct psim_seats *io_run)
{
    const struct tun_lane *blocker =
        &io_run->lanes->lanes[up_to(io_random, io_run->lanes->count - 1)];
    bool together = up_to(io_random, 2) > 0, too_many = up_to(io_random, 2) == 0;
    unsigned lowest = lowest_class_with_deadline(io_run);
    double before_ns = 0;
    size_t longest;

    io_run->window = 32;
    io_run->vary = up_to(io_random, 3) == 0;
    io_run->arrivals = up_to(io_random, 3) == 0 ? PSIM_SPORADIC : PSIM_EARLIEST;
    io_run->seed = base_splitmix64(io_random);
    tun_stop_ns(&blocker->stops[0], &longest);
    for (size_t u = 0; u < longest; u++) {
        before_ns += blocker->stops[0].unit_ns[u];
    }
    for (size_t m = 0; m < io_run->models; m++) {
        const struct tun_wish *w = &io_run->wishes[m];

        io_run->weight[m] = 1 + (double)up_to(io_random, 9);
        io_run->dealt[m] = up_to(io_random, 20);
        io_run->times[m] = up_to(io_random, 5) == 0 ? 0 : 1;
        if (too_many && w->class <= lowest && up_to(io_random, 1)) {
            io_run->times[m] = 10;
        }
        io_run->first_ns[m] = before_ns + 1;
        if (!together) {
            io_run->first_ns[m] =
                (double)BASE_NS_PER_S / w->rate / 1000 * (double)up_to(io_random, 1000);
        } else if (m == blocker->model) {
            io_run->first_ns[m] = 0;
        }
    }
    shuffle(io_random, io_run->order, io_run->models);
}
