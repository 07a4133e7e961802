/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/json_memory.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "ipc/varlink.h"

#define RESERVE (4 * (size_t)IPC_VARLINK_MESSAGE_MAX) /* a text grows by doubling */

static atomic_bool lacked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static _Alignas(64) uint8_t reserve[RESERVE];
static size_t used, pieces;

/* Without memory: of the reserve, until all of it is given back. */
static void *take_reserve(size_t bytes)
{
    void *p = NULL;

    atomic_store(&lacked, true);
    pthread_mutex_lock(&lock);
    if (bytes <= RESERVE - used) {
        p = reserve + used;
        used += base_min(base_align_up(bytes, 16), RESERVE - used);
        pieces++;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static void *take(size_t bytes)
{
    void *p = malloc(bytes);

    return p ? p : take_reserve(bytes);
}

static void give(void *p)
{
    if ((uintptr_t)p - (uintptr_t)reserve >= RESERVE) {
        free(p);
        return;
    }
    pthread_mutex_lock(&lock);
    used = --pieces > 0 ? used : 0;
    pthread_mutex_unlock(&lock);
}

void ipc_json_setup(void)
{
    json_set_alloc_funcs(take, give);
}

void ipc_json_begin(void)
{
    atomic_store(&lacked, false);
}

bool ipc_json_lacked(void)
{
    return atomic_load(&lacked);
}
