/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench: one client. */
#include <math.h>

#include "apps/pipectl/bench/bench.h"

#define PATTERNS 4
#define SLOTS_MAX 64L
#define INFER_TIMEOUT_MS 120000
#define REFERENCE_MS 30000 /* how long a reference is tried for that the policy refuses */
/* How far an answer may be off, as a share of the largest magnitude in its tensor: another plan may
 * use other primitives and widths, and so another order of sums. VGG-16 by two choices of
 * primitives differs by 0.8e-5; the answer to another frame is off by far more than ten times that.
 */
#define TOLERANCE 1e-4
#define TENSORS "--pixfmt tensor"

/* Fills an image with random bytes, a tensor with random values: f32 in [-1, 1). */
static void fill(struct bench_client *c, const struct ctl_options *o, size_t pattern,
                 struct piped_frame *f)
{
    const struct piped_stream_info *info = piped_stream_info(c->stream);
    uint64_t state = c->seed * PATTERNS + pattern;
    uint8_t *to = f->input;

    for (size_t i = 0; i < f->input_size; i++) {
        to[i] = o->pixfmt == PIPED_TENSOR ? 0 : (uint8_t)(base_splitmix64(&state) >> 56);
    }
    for (uint32_t t = 0; o->pixfmt == PIPED_TENSOR && t < info->input_count; t++) {
        const struct piped_tensor *in = &info->inputs[t];

        for (size_t i = 0; i < ctl_tensor_count(in); i++) {
            uint64_t r = base_splitmix64(&state);
            float v = (float)((double)(r >> 11) * (2.0 / 9007199254740992.0) - 1.0);

            if (in->dtype == PIPED_F32) {
                memcpy(to + in->offset + 4 * i, &v, 4);
            } else if (in->dtype == PIPED_U8) {
                to[in->offset + i] = (uint8_t)r;
            }
        }
    }
}

static struct bench_slot *slot_of(struct bench_client *c, const struct ctl_options *o,
                                  struct piped_frame *f)
{
    for (size_t i = 0; i < c->slot_count; i++) {
        if (c->slots[i].input == f->input) {
            return &c->slots[i];
        }
    }
    /* a new slot: it keeps the next pattern from now on */
    c->slots[c->slot_count] = (struct bench_slot){f->input, c->slot_count % PATTERNS};
    fill(c, o, c->slots[c->slot_count].pattern, f);
    c->patterns = base_max(c->patterns, c->slots[c->slot_count].pattern + 1);
    return &c->slots[c->slot_count++];
}

/* Infers a frame again while it is refused as the policy asks for: others may fill the pipeline.
 * @frame: the only free slot. Return: CTL_DONE with the answer in @frame. */
static int infer_reference(const struct bench *b, struct bench_client *c,
                           struct piped_frame **frame)
{
    const struct timespec pause = {.tv_nsec = BASE_NS_PER_MS};
    uint64_t end_ns = base_now_ns() + REFERENCE_MS * BASE_NS_PER_MS;

    for (;;) {
        struct piped_frame *f = *frame;
        int got = piped_infer(c->stream, f, INFER_TIMEOUT_MS);

        c->last_number = f->number;
        if (got == 0 && f->status == PIPED_OK) {
            return CTL_DONE;
        }
        if (got < 0 || !bench_is_asked_for(&b->o, f->status) || base_now_ns() >= end_ns) {
            return ctl_fail("cannot get a reference answer: %s",
                            got < 0 ? piped_last_error() : f->text);
        }
        nanosleep(&pause, NULL);
        piped_release(c->stream, f);
        if (piped_acquire(c->stream, frame) < 0) {
            ctl_say("cannot get a reference answer: %s", piped_last_error());
            *frame = NULL;
            return CTL_FAILED;
        }
    }
}

/* Gets the reference answer of each pattern: one frame at a time. */
static int take_references(struct bench *b, struct bench_client *c)
{
    size_t bytes = (size_t)piped_stream_info(c->stream)->output_bytes;
    struct piped_frame **frames = calloc(c->in_flight, sizeof(struct piped_frame *));
    size_t count = 0;
    int rc = CTL_DONE;

    if (!frames) {
        return ctl_fail("out of memory");
    }
    /* all slots first: each of the first has another pattern */
    while (count < c->in_flight && piped_acquire(c->stream, &frames[count]) == 0) {
        count++;
    }
    for (size_t i = 0; i < base_min(count, (size_t)PATTERNS) && rc == CTL_DONE; i++) {
        size_t pattern = slot_of(c, &b->o, frames[i])->pattern;

        rc = infer_reference(b, c, &frames[i]);
        if (rc == CTL_DONE) {
            c->reference[pattern] = malloc(bytes ? bytes : 1);
            if (!c->reference[pattern]) {
                rc = CTL_FAILED;
            } else {
                memcpy(c->reference[pattern], frames[i]->output, bytes);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (frames[i]) {
            piped_release(c->stream, frames[i]);
        }
    }
    free(frames);
    return rc;
}

/* Return: whether clients keep as many frames under way as the present plan needs. With another
 * policy the daemon is to see every frame. */
static bool follows_depth(const struct ctl_options *o)
{
    return o->in_flight == 0 && o->policy == PIPED_BLOCK;
}

/* Return: the slots of each client; 0: as the daemon decides. Plans to come may be deeper than the
 * present one, hence two for each core (a stage of its own and its team) and some. */
static uint32_t slots_of(const struct ctl_options *o)
{
    long cores = base_max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    uint32_t all = (uint32_t)base_min(2 * cores + 8, SLOTS_MAX);

    return follows_depth(o) ? base_max((all + o->clients - 1) / o->clients, (uint32_t)PATTERNS)
                            : o->in_flight;
}

/* Return: a client's share of the frames that fill the pipeline. */
static uint32_t own_depth(const struct bench *b, const struct bench_client *c)
{
    uint32_t clients = b->o.clients;

    return (base_max(piped_stream_info(c->stream)->depth, clients) + clients - 1) / clients;
}

/* Return: whether one more frame helps: the pipeline is not full of those of all clients. */
static bool has_room(const struct bench *b, const struct bench_client *c)
{
    const struct piped_stream_info *info = piped_stream_info(c->stream);

    return !follows_depth(&b->o) ||
           (b->under_way < base_max(info->depth, b->o.clients) && c->under_way < own_depth(b, c) &&
            c->under_way < base_max(info->credits, 1u));
}

/* Opens the stream; again with more slots where teams that take several frames at once make the
 * plan deeper than is usual for so many cores. Return: an exit code. */
static int open_stream(const struct bench *b, struct bench_client *c,
                       struct piped_stream_options *o)
{
    int rc = ctl_open_stream(c->client, o, TENSORS, &c->stream);

    if (rc == CTL_DONE && follows_depth(&b->o) &&
        own_depth(b, c) > piped_stream_info(c->stream)->slots) {
        o->slots = (uint32_t)base_min(2L * own_depth(b, c), SLOTS_MAX);
        piped_stream_close(c->stream);
        c->stream = NULL;
        rc = ctl_open_stream(c->client, o, TENSORS, &c->stream);
    }
    return rc;
}

int bench_client_open(const struct ctl *ctl, struct bench *b, struct bench_client *c, uint64_t seed)
{
    struct piped_stream_options o = {.size = sizeof(o),
                                     .model = b->o.model,
                                     .pixfmt = b->o.pixfmt,
                                     .policy = b->o.policy,
                                     .credits = b->o.in_flight,
                                     .slots = slots_of(&b->o),
                                     .width = b->width,
                                     .height = b->height,
                                     .deadline_ns = (uint64_t)(b->o.deadline_ms * 1e6),
                                     .inline_frames = b->o.inline_frames};
    int rc = ctl_connect(ctl, (uint32_t)(b->o.reconnect_s * 1e3), &c->client);

    c->seed = seed;
    rc = rc ? rc : open_stream(b, c, &o);
    if (rc) {
        return rc;
    }
    c->in_flight = piped_stream_info(c->stream)->slots;
    c->slots = calloc(c->in_flight, sizeof(*c->slots));
    c->reference = calloc(PATTERNS, sizeof(*c->reference));
    if (!c->slots || !c->reference) {
        return ctl_fail("out of memory");
    }
    return b->o.verify ? take_references(b, c) : CTL_DONE;
}

void bench_client_close(struct bench *b, struct bench_client *c)
{
    struct piped_stream_stats s;

    if (c->stream) {
        piped_stream_stats(c->stream, &s);
        b->reordered += s.reordered;
        b->duplicated += s.duplicated;
        b->resent += s.resent;
        b->reconnects += piped_reconnects(c->client);
    }
    piped_close(c->client);
    for (size_t i = 0; c->reference && i < PATTERNS; i++) {
        free(c->reference[i]);
    }
    free(c->reference);
    free(c->slots);
}

bool bench_is_asked_for(const struct ctl_options *o, int status)
{
    return (status == PIPED_DROPPED && o->policy == PIPED_LATEST) ||
           (status == PIPED_RESOURCE_EXHAUSTED && o->policy == PIPED_REJECT) ||
           (status == PIPED_DEADLINE_EXCEEDED && o->deadline_ms > 0);
}

bool bench_client_send(struct bench *b, struct bench_client *c, uint64_t time_ns)
{
    struct piped_frame *f;

    if (c->gone || !has_room(b, c) || piped_acquire(c->stream, &f) < 0) {
        return false;
    }
    slot_of(c, &b->o, f);
    f->time_ns = time_ns;
    if (piped_submit(c->stream, f) < 0) {
        c->gone = true;
        piped_release(c->stream, f);
        return false;
    }
    b->first_ns = b->first_ns ? b->first_ns : f->submitted_ns;
    c->waits_ns = c->waits_ns ? c->waits_ns : f->submitted_ns;
    c->under_way++;
    b->most_under_way = base_max(b->most_under_way, ++b->under_way);
    b->sent++;
    return true;
}

/* Return: 0 bit-equal, 1 within the tolerance, 2 wrong. */
static int compare(const struct bench_client *c, const uint8_t *reference, const void *output)
{
    const struct piped_stream_info *info = piped_stream_info(c->stream);
    int verdict = 0;

    for (uint32_t o = 0; o < info->output_count; o++) {
        const struct piped_tensor *t = &info->outputs[o];
        double largest = 0, worst = 0;

        if (memcmp(reference + t->offset, (const uint8_t *)output + t->offset, t->bytes) == 0) {
            continue;
        }
        verdict = 1;
        for (size_t i = 0; i < ctl_tensor_count(t); i++) {
            double a = ctl_tensor_value(t, reference, i), v = ctl_tensor_value(t, output, i);

            largest = fmax(largest, fabs(a));
            if (!(fabs(a - v) <= worst)) {
                worst = isnan(a - v) ? INFINITY : fabs(a - v);
            }
        }
        if (t->dtype != PIPED_F32 || worst > TOLERANCE * largest) {
            return 2;
        }
    }
    return verdict;
}

static void keep_latency(struct bench *b, double ms)
{
    if (base_room(&b->latency_ms, sizeof(ms), b->latency_count, &b->latency_size)) {
        b->latency_ms[b->latency_count++] = ms; /* else percentiles cover the first answers only */
    }
}

static void note_pause(struct bench *b, struct bench_client *c, uint64_t now_ns)
{
    b->pause_ns = base_max(b->pause_ns, now_ns > c->waits_ns ? now_ns - c->waits_ns : 0);
    c->under_way--;
    b->under_way--;
    c->waits_ns = c->under_way ? now_ns : 0;
}

static void note_error(struct bench *b, const struct piped_frame *f)
{
    int status = (unsigned)f->status < BENCH_STATUS_COUNT ? f->status : PIPED_INTERNAL;

    b->errors[status]++;
    snprintf(b->why[status], sizeof(b->why[status]), "%s", f->text);
}

size_t bench_client_collect(struct bench *b, struct bench_client *c)
{
    struct piped_frame *f;
    size_t count = 0;

    while (piped_next(c->stream, &f) == 0) {
        b->answered++;
        count++;
        note_pause(b, c, f->answered_ns);
        b->reordered += f->number <= c->last_number;
        c->last_number = f->number;
        if (f->status == PIPED_OK) {
            int verdict = 0;

            b->ok++;
            b->last_ns = f->answered_ns;
            keep_latency(b, (double)(f->answered_ns - f->time_ns) / 1e6);
            if (b->o.verify) {
                verdict = compare(c, c->reference[slot_of(c, &b->o, f)->pattern], f->output);
            }
            b->inexact += verdict == 1;
            b->wrong += verdict == 2;
        } else {
            note_error(b, f);
        }
        piped_release(c->stream, f);
    }
    return count;
}
