/* SPDX-License-Identifier: Apache-2.0 */
/* A place's streams, one for each form of frames, and the memory of their slots. */
#include "apps/http/pool_private.h"

size_t web_place_slots(const struct web_place *place)
{
    size_t bytes = 0;

    for (size_t i = 0; i < WEB_FORMS; i++) {
        bytes += place->forms[i].slot_bytes;
    }
    return bytes;
}

void web_place_hold(struct web_place *place, bool holds)
{
    web_memory_hold(place->pool->memory, &place->holds, holds);
}

/* An idle one. */
void web_place_close(struct web_place *place)
{
    if (place) {
        struct web_memory *m = place->pool->memory;
        size_t bytes = web_place_slots(place);

        for (size_t i = 0; i < WEB_FORMS; i++) {
            place->forms[i].decoder = piped_decoder_free(place->forms[i].decoder);
        }
        piped_close(place->client); /* and its streams */
        web_memory_lend(m, NULL, bytes);
        web_memory_give(m, NULL, bytes);
        free(place);
    }
}

/* Takes the place out that has been idle for longest; NULL: all are busy. */
struct web_place *web_place_oldest_idle(struct web_pool *p)
{
    struct web_place *place;

    TAILQ_FOREACH_REVERSE(place, &p->places, places, linked)
    {
        if (!place->busy) {
            TAILQ_REMOVE(&p->places, place, linked);
            p->count--;
            return place;
        }
    }
    return NULL;
}

/* Closes a slot that no request needs now. Return: false: there is none. */
static bool close_spare(struct web_place *place, enum web_form form)
{
    struct web_pool *p = place->pool;
    struct web_place *idle;
    bool closes = false;

    for (size_t i = 0; i < WEB_FORMS; i++) {
        if (i != (size_t)form && place->forms[i].stream) {
            web_place_close_stream(place, (enum web_form)i);
            return true;
        }
    }
    pthread_mutex_lock(&p->lock);
    idle = web_place_oldest_idle(p);
    if (idle) {
        web_memory_hold(p->memory, &closes, true);
    }
    pthread_mutex_unlock(&p->lock);
    web_place_close(idle);
    web_memory_hold(p->memory, &closes, false);
    return idle != NULL;
}

/* Claims memory for the place's request. A request with a slot does not wait for others with one.
 * Return: false: there is not enough. */
static bool claim(struct web_place *place, enum web_form form, size_t bytes, uint64_t until_ns)
{
    struct web_memory *m = place->pool->memory;

    for (;;) {
        uint64_t gifts = web_memory_gifts(m);

        if (web_memory_claim(m, place->by, bytes, &place->holds)) {
            return true;
        }
        if (close_spare(place, form)) {
            web_place_hold(place, web_place_slots(place) > 0); /* one of its own, perhaps */
        } else if (place->holds || !web_memory_wait(m, gifts, until_ns)) {
            return false;
        }
    }
}

void web_place_worked(struct web_place *place)
{
    web_memory_give(place->pool->memory, place->by, place->work_bytes);
    place->work_bytes = 0;
}

static int open_client(const struct web_options *o, struct piped **ret)
{
    struct piped_options p = {
        .size = sizeof(p),
        .path = o->frames_path,
        .client = "piped-http",
        .reconnect_ms = (uint32_t)(o->reconnect_s * 1e3),
        .answer_ms = (uint32_t)(o->answer_s * 1e3),
        .fail_fast = 1,
    };

    return piped_connect(&p, ret);
}

/* A stream with one slot. */
static int connect_stream(struct web_place *place, enum web_form form, const struct web_need *need)
{
    const struct web_options *o = place->pool->o;
    static const uint32_t pixfmt[] = {PIPED_TENSOR, PIPED_TENSOR, PIPED_RGB24, PIPED_GRAY8};
    struct piped_stream_options s = {
        .size = sizeof(s),
        .model = place->model,
        .pixfmt = pixfmt[form],
        .policy = strcmp(o->policy, "reject") == 0 ? PIPED_REJECT : PIPED_BLOCK,
        .credits = 1,
        .slots = 1,
        .width = need->width,
        .height = need->height,
        .input_dtype = form == WEB_FORM_HALF ? PIPED_F16 : 0,
    };
    int rc = place->client ? 0 : open_client(o, &place->client);

    return rc < 0 ? rc : piped_stream_open(place->client, &s, &place->forms[form].stream);
}

/* Opens a stream whose picture, and work, are claimed. What its tensors take is known then. */
static int open_stream(struct web_place *place, enum web_form form, const struct web_need *need)
{
    struct form *f = &place->forms[form];
    const struct piped_stream_info *info;
    size_t more;
    int rc = connect_stream(place, form, need);

    if (rc < 0) {
        return rc;
    }
    info = piped_stream_info(f->stream);
    more = (size_t)info->output_bytes + (need->width ? 0 : (size_t)info->input_bytes);
    if (!claim(place, form, more, need->until_ns)) {
        return WEB_E_MEMORY;
    }
    f->slot_bytes += more;
    return 0;
}

int web_place_stream(struct web_place *place, enum web_form form, const struct web_need *need,
                     struct piped_stream **ret, bool *ret_fresh)
{
    struct form *f = &place->forms[form];
    size_t picture = (size_t)need->width * need->height * (form == WEB_FORM_RGB ? 3 : 1);
    int rc;

    *ret_fresh = false;
    web_place_worked(place); /* of an attempt that was refused */
    if (f->stream && (picture > f->picture_bytes ||
                      !web_memory_claim(place->pool->memory, place->by, need->work_bytes, NULL))) {
        web_place_close_stream(place, form);
        web_place_hold(place, web_place_slots(place) > 0);
    } else if (f->stream) {
        place->work_bytes = need->work_bytes;
        *ret = f->stream;
        return 0;
    }
    if (!claim(place, form, picture + need->work_bytes, need->until_ns)) {
        return WEB_E_MEMORY;
    }
    place->work_bytes = need->work_bytes;
    f->picture_bytes = f->slot_bytes = picture;
    rc = open_stream(place, form, need);
    if (rc) {
        web_place_close_stream(place, form);
    }
    *ret = f->stream;
    *ret_fresh = true;
    return rc;
}

int web_place_decoder(struct web_place *place, enum web_form form, struct piped_decoder **ret)
{
    struct form *f = &place->forms[form];
    int rc = piped_decoder_follow(&f->decoder, f->stream);

    *ret = f->decoder;
    return rc;
}

bool web_place_connected(const struct web_place *place)
{
    return place->client != NULL;
}

bool web_place_lost(const struct web_place *place)
{
    return place->client && piped_dispatch(place->client, 0) == -ENOTCONN;
}

void web_place_close_stream(struct web_place *place, enum web_form form)
{
    struct form *f = &place->forms[form];

    f->decoder = piped_decoder_free(f->decoder);
    f->stream = piped_stream_close(f->stream);
    web_memory_give(place->pool->memory, place->by, f->slot_bytes);
    f->picture_bytes = f->slot_bytes = 0;
}
