/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/staged.h"

#include <math.h>

/* ---- mappings as genes ---- */

size_t tun_encoding_genes(enum tun_encoding encoding, size_t units, size_t places)
{
    return encoding == TUN_ENCODING_NE ? units : places;
}

/* The bounds of each gene while only the first @used places are used. */
static void encoding_bounds(enum tun_encoding encoding, size_t units, size_t places, size_t used,
                            uint16_t *ret_least, uint16_t *ret_most)
{
    size_t genes = tun_encoding_genes(encoding, units, places);

    for (size_t g = 0; g < genes; g++) {
        if (encoding == TUN_ENCODING_NE) {
            ret_least[g] = 0;
            ret_most[g] = (uint16_t)(used - 1);
        } else {
            ret_least[g] = (uint16_t)(g < used ? 0 : units);
            ret_most[g] = (uint16_t)(g > 0 ? units : 0);
        }
    }
}

void tun_encoding_decode(enum tun_encoding encoding, const uint16_t *genes, size_t units,
                         size_t places, uint16_t *ret_places)
{
    size_t u = 0;

    if (encoding == TUN_ENCODING_NE) {
        memcpy(ret_places, genes, units * sizeof(*genes));
        return;
    }
    for (size_t place = 0; place < places; place++) {
        size_t end = place + 1 < places ? base_min((size_t)genes[place + 1], units) : units;

        for (; u < end; u++) {
            ret_places[u] = (uint16_t)place;
        }
    }
}

double tun_encoding_space(enum tun_encoding encoding, size_t units, size_t places)
{
    double size = 1;

    if (encoding == TUN_ENCODING_NE) {
        return pow((double)places, (double)units);
    }
    for (size_t i = 1; i < places; i++) {
        size = size * (double)(units + i) / (double)i;
    }
    return size;
}

size_t tun_stages_of(size_t places)
{
    size_t stages = 1;

    while (((size_t)1 << stages) < places) {
        stages++;
    }
    return stages;
}

size_t tun_stage_places(size_t places, size_t stage)
{
    return base_min((size_t)1 << stage, places);
}

/* ---- stages and levels ---- */

struct tun_staged {
    struct tun_staged_options options;
    size_t gene_count, population, stage, last, stage_count;
    uint16_t *least, *most; /* [gene_count], owned */
    struct tun_evolve *engine;
    uint16_t *front; /* of the stage before: [front_count][gene_count], owned */
    size_t front_count;
    uint16_t *seeds; /* [seed_count][gene_count], owned: room for population */
    size_t seed_count;
    size_t questions_left;   /* of this stage */
    size_t gained, asked_at; /* generations of the last gain and of the last question */
};

int tun_staged_new(const struct tun_staged_options *o, struct tun_staged **ret)
{
    struct tun_staged *s;
    size_t stages = tun_stages_of(o->places);

    if (o->units == 0 || o->places == 0 || o->units > UINT16_MAX) {
        return -EINVAL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        return -ENOMEM;
    }
    s->options = *o;
    s->gene_count = tun_encoding_genes(o->encoding, o->units, o->places);
    s->population = o->population ? o->population + o->population % 2 : TUN_POPULATION;
    s->options.model_generations =
        o->model_generations ? o->model_generations : TUN_MODEL_GENERATIONS;
    s->last = stages;
    s->stage = o->stages ? stages - base_min(o->stages, stages) : 0;
    s->stage_count = stages - s->stage;
    s->least = calloc(s->gene_count, sizeof(*s->least));
    s->most = calloc(s->gene_count, sizeof(*s->most));
    s->front = calloc(s->population * s->gene_count, sizeof(*s->front));
    s->seeds = calloc(s->population * s->gene_count, sizeof(*s->seeds));
    if (!s->least || !s->most || !s->front || !s->seeds) {
        tun_staged_free(s);
        return -ENOMEM;
    }
    *ret = s;
    return 0;
}

struct tun_staged *tun_staged_free(struct tun_staged *s)
{
    if (s) {
        tun_evolve_free(s->engine);
        free(s->least);
        free(s->most);
        free(s->front);
        free(s->seeds);
        free(s);
    }
    return NULL;
}

/* Adds genes to a list of at most a population that has no repeats. */
static size_t add(const struct tun_staged *s, uint16_t *list, size_t count, const uint16_t *genes)
{
    size_t bytes = s->gene_count * sizeof(*genes);

    for (size_t i = 0; i < count; i++) {
        if (memcmp(list + i * s->gene_count, genes, bytes) == 0) {
            return count;
        }
    }
    if (count < s->population) {
        memcpy(list + count++ * s->gene_count, genes, bytes);
    }
    return count;
}

/* Adds an engine's first front. */
static size_t add_front(const struct tun_staged *s, const struct tun_evolve *engine, uint16_t *list,
                        size_t count)
{
    size_t parents;
    const struct tun_individual *all = tun_evolve_parents(engine, &parents);

    for (size_t i = 0; i < parents; i++) {
        if (all[i].rank == 0 && all[i].fitness.missed == 0) {
            count = add(s, list, count, all[i].genes);
        }
    }
    return count;
}

static int new_engine(struct tun_staged *s, const uint16_t *seeds, size_t count,
                      struct tun_evolve **ret)
{
    const struct tun_evolve_options options = {.gene_count = s->gene_count,
                                               .objective_count = s->options.objective_count,
                                               .least = s->least,
                                               .most = s->most,
                                               .sorted = s->options.encoding == TUN_ENCODING_SPE,
                                               .population = s->population,
                                               .crossover = -1,
                                               .mutation = -1};
    int error = tun_evolve_new(&options, ret);

    for (size_t i = 0; !error && i < count; i++) {
        tun_evolve_seed(*ret, seeds + i * s->gene_count);
    }
    return error;
}

/* Level 1: its front becomes the first of level 2's seeds. */
static int run_model(struct tun_staged *s, struct tun_random *random)
{
    struct tun_evolve *engine;
    int error = new_engine(s, s->front, s->front_count, &engine);

    if (error) {
        return error;
    }
    while (tun_evolve_generation(engine) < s->options.model_generations) {
        const uint16_t *genes = tun_evolve_ask(engine, random);
        struct tun_fitness fitness;

        if (genes) {
            s->options.model(s->options.context, genes, &fitness);
            tun_evolve_tell(engine, &fitness);
        }
    }
    s->seed_count = add_front(s, engine, s->seeds, s->seed_count);
    tun_evolve_free(engine);
    return 0;
}

/* Of the stage that begins. */
static size_t questions_of(const struct tun_staged *s)
{
    size_t max = s->options.questions_max, early = s->stage_count - 1;
    double share =
        s->options.early > 0 && early > 0
            ? (s->stage == s->last ? 1 - s->options.early : s->options.early / (double)early)
            : 1 / (double)s->stage_count;

    return max ? base_max((size_t)((double)max * share + 0.5), (size_t)1) : SIZE_MAX;
}

static int begin_stage(struct tun_staged *s, struct tun_random *random)
{
    size_t used;
    int error = 0;

    if (s->engine) {
        tun_evolve_end(s->engine);
        s->front_count = add_front(s, s->engine, s->front, 0);
    }
    s->engine = tun_evolve_free(s->engine);
    used = tun_stage_places(s->options.places, ++s->stage);
    encoding_bounds(s->options.encoding, s->options.units, s->options.places, used, s->least,
                    s->most);
    s->seed_count = 0;
    if (s->options.model) {
        error = run_model(s, random);
    }
    for (size_t i = 0; i < s->front_count; i++) {
        s->seed_count = add(s, s->seeds, s->seed_count, s->front + i * s->gene_count);
    }
    s->questions_left = questions_of(s);
    s->gained = s->asked_at = 0;
    return error ? error : new_engine(s, s->seeds, s->seed_count, &s->engine);
}

static bool stage_ended(const struct tun_staged *s)
{
    size_t generation = tun_evolve_generation(s->engine), alpha = s->options.alpha;

    return s->questions_left == 0 ||
           (alpha > 0 && (generation >= s->gained + alpha || generation >= s->asked_at + alpha));
}

int tun_staged_ask(struct tun_staged *s, struct tun_random *random, const uint16_t **ret_genes)
{
    for (;;) {
        const uint16_t *genes;
        int error;

        if (!s->engine || stage_ended(s)) {
            if (s->stage == s->last) {
                return TUN_STAGED_DONE;
            }
            error = begin_stage(s, random);
            if (error) {
                return error;
            }
        }
        genes = tun_evolve_ask(s->engine, random);
        if (genes) {
            *ret_genes = genes;
            return 0;
        }
    }
}

void tun_staged_tell(struct tun_staged *s, const struct tun_fitness *fitness, bool better,
                     bool known)
{
    size_t generation = tun_evolve_generation(s->engine) + 1;

    if (better) {
        s->gained = generation;
    }
    if (!known) {
        s->questions_left--;
        s->asked_at = generation;
    }
    tun_evolve_tell(s->engine, fitness);
}

size_t tun_staged_stage(const struct tun_staged *s)
{
    return s->stage;
}

const uint16_t *tun_staged_seeds(const struct tun_staged *s, size_t *ret_count)
{
    *ret_count = s->seed_count;
    return s->seeds;
}

const struct tun_individual *tun_staged_parents(const struct tun_staged *s, size_t *ret_count)
{
    *ret_count = 0;
    return s->engine ? tun_evolve_parents(s->engine, ret_count) : NULL;
}
