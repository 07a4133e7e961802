/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/pool.h - connections to the daemon that requests share
 *
 * A place is a connection of libpiped with streams to one model: one for each form in which frames
 * come. One request at a time holds it, so as many frames of a model are under way as it has
 * places. Idle places are kept for the next request, and closed after WEB_IDLE_S, or when another
 * model needs the room, or requests the memory of their slots (memory.h).
 *
 * Threads: any; the holder of a place is the only one that touches it.
 */
#pragma once

#include "apps/http/web.h"
#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"

#define WEB_IDLE_S 30u

struct web_place;

/* In which frames come. */
enum web_form { WEB_FORM_TENSOR, WEB_FORM_HALF, WEB_FORM_RGB, WEB_FORM_GRAY, WEB_FORMS };

/* What a request needs of a stream. */
struct web_need {
    uint32_t width, height; /* of a picture; else 0 */
    size_t work_bytes;      /* beside the slot, until web_place_worked() */
    uint64_t until_ns;      /* so long it waits for memory */
};

struct web_pool_counts {
    size_t open, busy, waiting;
};

/* web_place_stream() */
#define WEB_E_MEMORY 1 /* --memory-mb is too little now */

/** web_pool_new() - borrows both. Return: NULL: no memory. */
struct web_pool *web_pool_new(const struct web_options *o, struct web_memory *m);
/** web_pool_free() - when nobody holds a place. Return: NULL. */
struct web_pool *web_pool_free(struct web_pool *p);
/**
 * web_pool_take() - a place for a frame to a model; waits until @until_ns for one
 *
 * @by: whose the slots of the place are until it is given back; NULL: nobody's.
 *
 * Return: 0; -ETIMEDOUT: none became free; -EAGAIN: too many wait already; -ENOMEM.
 */
int web_pool_take(struct web_pool *p, const char *model, struct web_owner *by, uint64_t until_ns,
                  struct web_place **ret);
/** web_pool_give() - gives it back. @broken: close it; a frame may still be under way. */
void web_pool_give(struct web_pool *p, struct web_place *place, bool broken);
/**
 * web_place_stream() - the place's stream for a form, opened if it is not yet
 *
 * Its slot, and @need->work_bytes, are claimed before. A slot for pictures is as large as the
 * picture for which it was opened, and takes any other of so many bytes, whatever its shape.
 * @ret_fresh: it was opened now, so what it says of the model is new.
 *
 * Return: 0; WEB_E_MEMORY; -errno of piped_connect() or piped_stream_open(), with
 * piped_last_error().
 */
int web_place_stream(struct web_place *place, enum web_form form, const struct web_need *need,
                     struct piped_stream **ret, bool *ret_fresh);
/** web_place_worked() - gives @need->work_bytes back, if they were claimed. So do the next
 * web_place_stream() and web_pool_give(). */
void web_place_worked(struct web_place *place);
/**
 * web_place_decoder() - what decodes the answers of the place's stream for a form, which is open
 *
 * @ret: the place owns it, until the stream is closed or described anew.
 *
 * Return: 0; -errno of piped_decoder_new(), with piped_last_error().
 */
int web_place_decoder(struct web_place *place, enum web_form form, struct piped_decoder **ret);
/** web_place_connected() - Return: it was connected; libpiped looks for a daemon that went. */
bool web_place_connected(const struct web_place *place);
/** web_place_lost() - Return: its connection is closed for good, so it has to be given back as
 * broken. */
bool web_place_lost(const struct web_place *place);
/** web_place_close_stream() - the next frame of that form opens another. */
void web_place_close_stream(struct web_place *place, enum web_form form);
/** web_pool_tidy() - closes what has been idle for long. */
void web_pool_tidy(struct web_pool *p, uint64_t now_ns);
struct web_pool_counts web_pool_count(struct web_pool *p);
