/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tuner/admit_set.h"

#include "base/base.h"
#include "tests/harness.h"

#define EPISODE 400u

/* Adds a lane of a model with random stops on random seats. @ns: of a unit, at most. */
static void add_lane(struct set *x, size_t model, double share, double ns, bool wide)
{
    struct tun_lane *lane = &x->lane[x->lanes.count];
    size_t first = 0, seat = (size_t)t_range(0, (int64_t)x->lanes.seats - 1);

    *lane = (struct tun_lane){.model = model, .share = share};
    lane->stages = x->lanes.seats == 1 || wide ? 1 : (size_t)t_range(1, STOPS);
    seat = wide ? x->width * (size_t)t_range(0, (int64_t)(x->lanes.seats / x->width - 1)) : seat;
    for (size_t j = 0; j < lane->stages; j++) {
        double *unit_ns = &x->unit_ns[(x->lanes.count * STOPS + j) * UNITS],
               *piece_ns = &x->piece_ns[(x->lanes.count * STOPS + j) * UNITS];
        struct tun_stop *stop = &lane->stops[j];

        *stop = (struct tun_stop){.seat = seat,
                                  .width = wide ? x->width : 0,
                                  .first = first,
                                  .unit_ns = unit_ns,
                                  .piece_ns = x->cut && !wide ? piece_ns : NULL};
        stop->units = (size_t)t_range(1, UNITS);
        for (size_t u = 0; u < stop->units; u++) {
            unit_ns[u] = ns * (double)t_range(1, 100) / 100;
            piece_ns[u] = unit_ns[u] * (double)(t_range(0, 1) ? t_range(5, 100) : 100) / 100;
        }
        first += stop->units;
        seat = (seat + 1) % x->lanes.seats;
    }
    x->lanes.count++;
}

double set_load(const struct set *x)
{
    double load[SEATS] = {0}, most = 0;

    for (size_t i = 0; i < x->lanes.count; i++) {
        for (size_t j = 0; j < x->lane[i].stages; j++) {
            const struct tun_stop *s = &x->lane[i].stops[j];

            for (size_t k = 0; k < tun_stop_width(s); k++) {
                load[s->seat + k] += x->lane[i].share * x->wishes[x->lane[i].model].rate *
                                     tun_stop_ns(s, NULL) / 1e9;
            }
        }
    }
    for (size_t i = 0; i < x->lanes.seats; i++) {
        most = base_max(most, load[i]);
    }
    return most;
}

void set_init(struct set *x, double load, int64_t late, bool wide)
{
    double times;

    *x = (struct set){.lanes = {.seats = (size_t)t_range(1, SEATS - 1), .lanes = x->lane}};
    if (wide) {
        x->lanes.seats = (size_t)t_range(2, SEATS);
        x->width = (size_t)t_range(2, (int64_t)x->lanes.seats);
    }
    x->models = (size_t)t_range(2, MODELS);
    x->cut = t_range(0, 1);
    x->floor = t_range(0, 2) == 0 ? (double)t_range(1, 20) / 100 : 0;
    for (size_t m = 0; m < x->models; m++) {
        size_t lanes = (size_t)t_range(1, LANES);
        double alone_ns = 0, left = 1, ns = 1e5 * (double)t_range(1, 10);

        x->takes_several[m] = wide && (m == 0 || t_range(0, 2) == 0);

        for (size_t i = 0; i < lanes; i++) {
            double share = i + 1 < lanes ? left * (double)t_range(10, 90) / 100 : left, sum = 0;

            add_lane(x, m, share, ns, x->takes_several[m]);
            left -= share;
            for (size_t j = 0; j < x->lane[x->lanes.count - 1].stages; j++) {
                sum += tun_stop_ns(&x->lane[x->lanes.count - 1].stops[j], NULL);
            }
            alone_ns = base_max(alone_ns, sum);
        }
        x->wishes[m] = (struct tun_wish){
            .rate = (double)t_range(10, 1000), .weight = 1, .class = (unsigned)t_range(0, 2)};
        if (t_range(0, 3) > 0) {
            x->wishes[m].deadline_ns = alone_ns * (double)t_range(12, 10 * late) / 10;
        }
    }
    times = load / set_load(x);
    for (size_t m = 0; m < x->models; m++) {
        x->wishes[m].rate *= times;
    }
    tun_lanes_due(x->wishes, &x->lanes);
}

void set_hold(const struct set *x, const struct tun_answer *a, uint64_t frames,
              struct psim_seen *seen)
{
    for (uint64_t episode = 0; episode * EPISODE < frames; episode++) {
        struct psim_seats run = {.wishes = x->wishes,
                                 .lanes = &x->lanes,
                                 .models = x->models,
                                 .floor = x->floor,
                                 .frames = EPISODE};

        psim_seats_draw(&t_state, &run);
        T_EQ(psim_seats_run(&run, seen), 0);
        for (size_t m = 0; m < x->models; m++) {
            if (x->wishes[m].deadline_ns > 0) {
                T_EQ(seen->late[m], 0);
                T_LE(seen->worst_ns[m], a->bound_ns[m] * (1 + 1e-9) + 1);
            }
        }
    }
}
