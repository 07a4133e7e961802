/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/staged.h - the multi-stage hierarchical DSE: mappings of units onto places as genes,
 * and NSGA-II over them, stage by stage, level by level
 *
 * A mapping says of each unit which place runs it. The hierarchical DSE's two encodings (its
 * section 4, figure 2), with places and positions counted from 0:
 *
 *     NE    one gene a unit: its place                       [0,0,1,1,2,3,3,3]
 *     SPE   one gene a place: how many units lie before it   [0,2,4,5]
 *
 * are one mapping of 8 units onto 4 places: in SPE place i runs the units from its gene to the
 * next place's. The first gene is 0; equal genes leave a place without units. Places come in a
 * fixed order.
 *
 * Staged (its figure 3): K = ceil(log2 N) stages, stage k = 1.. uses the first 2^k places, the
 * last one all N. The genes have their full number in every stage; SPE's genes of places that are
 * not used yet are the number of units, NE's genes stay below the places that are used.
 *
 * With a model, a stage has two levels: level 1 judges by the model, at once; level 2 asks. Level 1
 * begins with the front of the stage before, level 2 with level 1's front and that of the stage
 * before. Without a model there is level 2 alone: one such stage is 1s-SPE or 1s-NE of the paper,
 * all K with a model are 3s-2l-SPE.
 *
 * The paper gives no number of generations. Here every stage gets the same share of the questions,
 * and level 1 TUN_MODEL_GENERATIONS generations, unless told: few, since a board computes them.
 * More are better; with 3,000 the paper's claims hold (tuner/pipesim/dse.h). A stage also ends
 * after `alpha` generations without a better best (the caller says what is best), and after as many
 * without a question.
 *
 * One thread at a time. Only files of tuner/ and tests include it.
 */
#pragma once

#include "tuner/search/evolve.h"
#include "tuner/search/search_table.h"

/** tun_encoding_genes() - how many a mapping has. */
size_t tun_encoding_genes(enum tun_encoding encoding, size_t units, size_t places);
/** tun_encoding_decode() - @genes: SPE's in rising order. @ret_places: [units]. */
void tun_encoding_decode(enum tun_encoding encoding, const uint16_t *genes, size_t units,
                         size_t places, uint16_t *ret_places);
/** tun_encoding_space() - how many lists of genes: places^units, or the binomial
 * C(units + places - 1, places - 1); infinite where no double holds it. */
double tun_encoding_space(enum tun_encoding encoding, size_t units, size_t places);

/** tun_stages_of() - K; 1 for one place. */
size_t tun_stages_of(size_t places);
/** tun_stage_places() - places that stage @stage uses, 1..K. */
size_t tun_stage_places(size_t places, size_t stage);

#define TUN_MODEL_GENERATIONS 50u

/* What level 1 judges by. */
typedef void (*tun_model_fn)(void *context, const uint16_t *genes, struct tun_fitness *ret);

struct tun_staged_options {
    enum tun_encoding encoding;
    size_t units, places;
    size_t stages; /* the last so many of the K; 0: all */
    size_t objective_count;
    size_t population;        /* 0: TUN_POPULATION */
    size_t questions_max;     /* over all stages; 0: no limit */
    double early;             /* share of them for the stages before the last; 0: as many each */
    unsigned alpha;           /* 0: no limit */
    size_t model_generations; /* 0: TUN_MODEL_GENERATIONS */
    tun_model_fn model;       /* NULL: no level 1 */
    void *context;            /* borrowed, for model */
};

struct tun_staged;

/** tun_staged_new() - Return: 0, -EINVAL (no units or places), -ENOMEM. */
int tun_staged_new(const struct tun_staged_options *o, struct tun_staged **ret);
struct tun_staged *tun_staged_free(struct tun_staged *s);

/** tun_staged_ask() - genes to judge. Return: 0, TUN_STAGED_DONE, or -ENOMEM. @ret_genes: borrowed
 * until tell(). */
enum { TUN_STAGED_DONE = 1 };
int tun_staged_ask(struct tun_staged *s, struct tun_random *random, const uint16_t **ret_genes);
/** tun_staged_tell() - @better: the best so far of this stage got better. @known: it took no
 * question (its fitness was known). */
void tun_staged_tell(struct tun_staged *s, const struct tun_fitness *fitness, bool better,
                     bool known);

/** tun_staged_stage() - the present stage, 1..K. */
size_t tun_staged_stage(const struct tun_staged *s);
/** tun_staged_seeds() - what the present level 2 began with besides random ones. @ret: [*ret_count]
 * lists of genes, one behind the other. Borrowed until the stage ends. */
const uint16_t *tun_staged_seeds(const struct tun_staged *s, size_t *ret_count);
/** tun_staged_parents() - the present population of level 2. As tun_evolve_parents(). */
const struct tun_individual *tun_staged_parents(const struct tun_staged *s, size_t *ret_count);
