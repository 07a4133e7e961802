/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v2/models/NAME/infer: a request's inputs into a slot, the answer out of it. */
#include "apps/http/tensors.h"
#include "apps/show/decoded.h"

#define TOP_USUAL 5u
#define TOP_MOST 1000u
#define MARGIN_NS (500 * BASE_NS_PER_MS) /* in which the daemon says itself that a frame is late */

/* A request on its way to the daemon. */
struct job {
    struct web_request *q;
    struct web_reply *r;
    struct web_call call;
    struct web_place *place; /* borrowed from the pool while an attempt runs */
    struct picture image;    /* borrows the body */
    struct web_need need;
    bool picture, outputs; /* outputs: the address asks for them */
    enum web_form form;
    size_t top;
    uint64_t deadline_ns; /* of the frame; 0: none */
    uint64_t end_ns;      /* an answer that comes later is of no use */
};

/* What became of one attempt. */
enum outcome { DONE, STALE, BROKEN };

static bool number_of(const struct web_request *q, const char *name, uint64_t usual, uint64_t most,
                      uint64_t *ret, struct web_reply *r)
{
    const char *text = MHD_lookup_connection_value(q->http, MHD_GET_ARGUMENT_KIND, name);

    *ret = usual;
    if (text && !web_head_number(text, most, ret)) {
        return web_fail(r, 400, "%s must be a number from 0 to %llu", name,
                        (unsigned long long)most);
    }
    return true;
}

static bool flag_of(const struct job *j, const char *name, bool *ret)
{
    uint64_t n;
    bool good = number_of(j->q, name, 0, 1, &n, j->r);

    *ret = n == 1;
    return good;
}

/* What the address says of any request: ?decode=1&outputs=1&binary=1. */
static bool read_wishes(struct job *j)
{
    return flag_of(j, "decode", &j->call.decode) && flag_of(j, "outputs", &j->outputs) &&
           flag_of(j, "binary", &j->call.all_binary);
}

/* What the address of a picture's request says: ?top=N&timeout=US. */
static bool read_picture(struct job *j)
{
    uint64_t top, timeout_us;

    if (!number_of(j->q, "top", TOP_USUAL, TOP_MOST, &top, j->r) ||
        !number_of(j->q, "timeout", 0, 3600000000ull, &timeout_us, j->r) ||
        !web_picture_read(j->q, &j->image, &j->need, j->r)) {
        return false;
    }
    j->top = (size_t)top;
    j->call.timeout_ns = timeout_us * BASE_NS_PER_US;
    j->form = j->image.channels == 1 ? WEB_FORM_GRAY : WEB_FORM_RGB;
    return true;
}

static bool read_request(struct job *j)
{
    const struct web_options *o = &j->q->listener->web->o;
    uint64_t now = base_now_ns(), timeout_ns;

    j->picture = j->q->body_kind == WEB_BODY_JPEG || j->q->body_kind == WEB_BODY_PNG;
    if (!read_wishes(j) || !(j->picture ? read_picture(j) : web_call_read(j->q, &j->call, j->r))) {
        return false;
    }
    /* Of tensors that are decoded only the outputs come that the request names, for which the
     * protocol wants a list. */
    j->call.no_outputs = j->picture && !j->outputs;
    j->call.only_named = !j->picture && j->call.decode && !j->outputs;
    if (!j->picture) {
        j->form = j->call.half ? WEB_FORM_HALF : WEB_FORM_TENSOR;
    }
    timeout_ns = j->call.timeout_ns ? j->call.timeout_ns : (uint64_t)(o->deadline_ms * 1e6);
    j->deadline_ns = timeout_ns ? j->q->begin_ns + timeout_ns : 0;
    j->end_ns = now + (uint64_t)(o->answer_s * 1e9);
    if (j->deadline_ns) {
        j->end_ns = base_min(j->end_ns, j->deadline_ns + MARGIN_NS);
    }
    j->need.until_ns = j->end_ns;
    return true;
}

/* The best classes of a picture, or the outputs if it has none. */
static json_t *classes_of(struct job *j, const struct piped_frame *f)
{
    struct piped_decoder *d;
    json_t *top = NULL;

    if (j->picture && web_place_decoder(j->place, j->form, &d) == 0) {
        top = shw_top(d, f->output, j->top);
    }
    j->call.no_outputs &= top != NULL;
    return top ? json_pack("{s:o}", "top", top) : NULL;
}

/* What decodes the answers of the place's stream, which is open. Return: NULL: the reply is an
 * error. */
static struct piped_decoder *decoder_of(struct job *j)
{
    struct piped_decoder *d = NULL;
    int rc = web_place_decoder(j->place, j->form, &d);

    if (rc == -ENODATA) {
        web_fail(j->r, 400, "%s", piped_last_error());
    } else if (rc < 0) {
        web_fail(j->r, 500, "the outputs cannot be decoded: %s", piped_last_error());
    }
    return rc == 0 ? d : NULL;
}

/* What the outputs mean. Return: NULL: the reply is an error. */
static json_t *decoded_of(struct job *j, struct piped_stream *s, const struct piped_frame *f)
{
    const struct piped_decoded *found;
    struct piped_decoder *d = decoder_of(j);
    json_t *more;

    if (!d) {
        return NULL;
    }
    if (piped_decode_frame(d, s, f, &found) < 0) {
        web_fail(j->r, 500, "the outputs cannot be decoded: %s", piped_last_error());
        return NULL;
    }
    if (!web_claim(j->q, shw_json_bytes(found), j->r)) {
        return NULL;
    }
    more = json_object();
    shw_json(more, found);
    return more;
}

static void answer(struct job *j, struct piped_stream *s, const struct piped_frame *f)
{
    json_auto_t *more = j->call.decode ? decoded_of(j, s, f) : classes_of(j, f);

    if (more || !j->call.decode) {
        web_call_answer(&j->call, j->q, s, f, more, j->r);
    }
}

/* A stream from an earlier request may belong to what the model was then. */
static bool may_be_stale(int status)
{
    return status == PIPED_NOT_FOUND || status == PIPED_INVALID_ARGUMENT ||
           status == PIPED_UNSUPPORTED || status == PIPED_UNAVAILABLE;
}

/* Sends the frame and waits. */
static enum outcome run_frame(struct job *j, struct piped_stream *s, struct piped_frame *f,
                              bool fresh)
{
    uint64_t now = base_now_ns();
    int rc;

    f->deadline_ns = j->deadline_ns;
    rc = piped_infer(s, f, now < j->end_ns ? (int)((j->end_ns - now) / BASE_NS_PER_MS) + 1 : 0);
    if (rc == -ETIMEDOUT || rc == -EINTR) {
        web_fail(j->r, 504, "deadline_exceeded: the daemon has not answered in time");
        return BROKEN;
    }
    if (rc < 0) {
        web_fail(j->r, rc == -EINVAL ? 400 : 503, "%s", piped_last_error());
        return fresh ? BROKEN : STALE;
    }
    if (f->status != PIPED_OK) {
        web_fail_frame(j->r, f->status, f->text);
        return fresh || !may_be_stale(f->status) ? DONE : STALE;
    }
    answer(j, s, f);
    return DONE;
}

static enum outcome attempt(struct job *j)
{
    struct web_place *place = j->place;
    struct piped_stream *s = NULL;
    struct piped_frame *f;
    enum outcome outcome;
    bool fresh;
    int rc = web_place_stream(place, j->form, &j->need, &s, &fresh);

    if (rc == WEB_E_MEMORY) {
        web_fail_memory(j->r, j->q->listener->web);
        return DONE;
    }
    if (rc < 0) {
        web_fail_open(j->r, rc, web_place_connected(place), piped_last_error());
        return BROKEN;
    }
    if (j->call.decode && !decoder_of(j)) {
        return fresh ? DONE : STALE;
    }
    if (piped_acquire(s, &f) < 0) {
        web_fail(j->r, 500, "a stream has no free slot");
        return BROKEN;
    }
    if (j->picture ? !web_picture_decode(&j->image, f, j->r)
                   : !web_call_fill(&j->call, piped_stream_info(s), f, j->q, j->r)) {
        piped_release(s, f);
        /* What does not fit an old stream may fit what the model is now. */
        return fresh || j->picture ? DONE : STALE;
    }
    web_place_worked(place);
    outcome = run_frame(j, s, f, fresh);
    if (outcome == DONE) {
        piped_release(s, f);
    }
    return outcome;
}

void web_infer(struct web_request *q, struct web_reply *r)
{
    struct web *w = q->listener->web;
    struct job j = {.q = q, .r = r};
    enum outcome outcome = STALE;
    uint64_t begin = base_now_ns();
    int rc = -ECANCELED;

    if (read_request(&j)) {
        rc = web_pool_take(w->pool, q->model, q->owner, j.deadline_ns ? j.deadline_ns : j.end_ns,
                           &j.place);
    }
    if (rc == 0) {
        for (int i = 0; i < 2 && outcome == STALE; i++) {
            if (i > 0) {
                web_reply_forget(r);
                web_place_close_stream(j.place, j.form);
            }
            outcome = attempt(&j);
            outcome = web_place_lost(j.place) ? BROKEN : outcome;
        }
        web_pool_give(w->pool, j.place, outcome != DONE);
    } else if (rc == -EAGAIN || (rc == -ETIMEDOUT && !j.deadline_ns)) {
        web_fail(r, 429,
                 "resource_exhausted: all %u streams of the model are busy and %u requests "
                 "may wait (--streams, --streams-total, --queue)",
                 w->o.streams, w->o.queue);
    } else if (rc == -ETIMEDOUT) {
        web_fail(r, 504, "deadline_exceeded: no stream to the daemon was free in time");
    } else if (rc == -ENOMEM) {
        web_fail(r, 500, "out of memory");
    }
    web_split_free(&j.call.json);
    w->count.infers++;
    w->count.infer_ns += base_now_ns() - begin;
}
