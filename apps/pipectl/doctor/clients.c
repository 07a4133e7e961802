/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: clients that wait for themselves, are refused, late, or send too much. */
#include <math.h>

#include "apps/pipectl/doctor/facts.h"
#include "ipc/server/frame_rules.h"

#define IDLE 0.85       /* the busiest stage is busy for less: the daemon waits */
#define WAITS 0.6       /* a stream waits for this share of the time */
#define SINGLY 0.05     /* of that, with a second frame on its way: as good as never */
#define ANSWERS 2       /* of a client, fewer say nothing of its habits */
#define KEEPS 0.45      /* of its frames, at least, came without its having read all answers */
#define FOR_EACH_TEAM 2 /* credits: one frame is computed, another is on its way */
#define PICTURES 0.15   /* of a frame's time is worth a word */
#define LATELY_S 60     /* refusals of clients that are gone */

/* A stream of a client while the daemon has nothing to do. */
struct stream {
    const json_t *client, *now, *model;
    const json_t *connection, *before; /* the client and the stream as they were; NULL: new */
    double busy;                       /* of the model's busiest stage */
};

/* Finds the same stream of the same client before. */
static void find_before(const struct doctor *d, struct stream *s)
{
    json_text_each(json_object_get(d->before, "clients"), i, c) {
        if (ctl_value(c, "pid") != ctl_value(s->client, "pid")) {
            continue;
        }
        s->connection = c;
        json_text_each(json_object_get(c, "opened"), k, was) {
            if (ctl_value(was, "stream") == ctl_value(s->now, "stream") &&
                doctor_more(was, s->now, "some_s") >= 0) {
                s->before = was;
                return;
            }
        }
    }
}

/* Return: for which share of the time the stream did what @key counts. */
static double share_of_time(const struct doctor *d, const struct stream *s, const char *key)
{
    return doctor_more(s->before, s->now, key) / d->seconds;
}

/* Where a stream waits for answers while the daemon waits for frames. */
static void waits(struct doctor *d, const struct stream *s)
{
    const json_t *client = s->client;
    double full = share_of_time(d, s, "full_s"), some = share_of_time(d, s, "some_s");
    double more = share_of_time(d, s, "more_s"), teams = doctor_teams(s->model);
    double credits = ctl_value(s->now, "credits"), needed = FOR_EACH_TEAM * teams;

    if (some >= WAITS && more < SINGLY * some) {
        doctor_find(d, ctl_text(s->model, "name"), 1 - s->busy,
                    "Let it send the next frame before the answer to the last one came: credits 0 "
                    "in piped_open() gives as many as the plan needs; pipectl bench has "
                    "--in-flight.",
                    "Client \"%s\" (pid %.0f) has one frame in flight and waits for its answer for "
                    "%.0f %% of the time; the plan has %.0f team%s, and the busiest stage is busy "
                    "for only %.0f %%.",
                    ctl_text(client, "client"), ctl_value(client, "pid"), 100 * some, teams,
                    base_plural(teams), 100 * s->busy);
    } else if (full >= WAITS && credits < needed) {
        doctor_find(
            d, ctl_text(s->model, "name"), 1 - s->busy,
            "Let it open the stream with more credits; 0 gives as many as the plan needs, "
            "up to the key limits.credits.",
            "Client \"%s\" (pid %.0f) waits for its own credits for %.0f %% of the time: it "
            "has %.0f, the plan needs %.0f, and the busiest stage is busy for only %.0f %%.",
            ctl_text(client, "client"), ctl_value(client, "pid"), 100 * full, credits, needed,
            100 * s->busy);
    }
}

/* Where a client keeps its slots: most frames of the stream came without its having read all
 * answers before. */
static void keeps(struct doctor *d, const struct stream *s)
{
    double some = share_of_time(d, s, "some_s"), credits = ctl_value(s->now, "credits");
    double answered = doctor_more(s->connection, s->client, "answered");
    double fills = doctor_more(s->before, s->now, "fills");

    if (!(some < WAITS && answered >= ANSWERS && credits > 1 &&
          fills * ipc_flow_burst((uint32_t)credits) >= KEEPS * answered)) {
        return;
    }
    doctor_find(d, ctl_text(s->model, "name"), 1 - s->busy,
                "Let it take its answers at once, in a thread of their own, and do elsewhere what "
                "takes so long, in more processes if need be. If it waits for its camera "
                "meanwhile, nothing is lost.",
                "Client \"%s\" (pid %.0f) keeps its %.0f slots and takes an answer every %.0f "
                "ms; its frames are in the daemon for %.0f %% of the time, and the daemon is idle "
                "for %.0f %%.",
                ctl_text(s->client, "client"), ctl_value(s->client, "pid"), credits,
                1e3 * d->seconds / answered, 100 * some, 100 * (1 - s->busy));
}

static void each_idle_stream(struct doctor *d,
                             void (*judge)(struct doctor *d, const struct stream *s))
{
    json_text_each(json_object_get(d->after, "clients"), i, c) {
        json_text_each(json_object_get(c, "opened"), k, now) {
            struct stream s = {.client = c, .now = now, .model = doctor_model(d, now, "model")};
            struct doctor_stage busiest;

            if (s.model && d->seconds > 0 && doctor_busiest(d, s.model, &busiest) &&
                busiest.busy < IDLE) {
                s.busy = busiest.busy;
                find_before(d, &s);
                judge(d, &s);
            }
        }
    }
}

void doctor_client_waits(struct doctor *d)
{
    each_idle_stream(d, waits);
}

void doctor_slow_client(struct doctor *d)
{
    each_idle_stream(d, keeps);
}

/* Return: both have the same of each key, or neither has it. */
static bool same_in(const json_t *a, const json_t *b, const char *const *keys)
{
    for (; *keys; keys++) {
        const json_t *of_a = json_object_get(a, *keys), *of_b = json_object_get(b, *keys);

        if (of_a != of_b && !json_equal(of_a, of_b)) {
            return false;
        }
    }
    return true;
}

/* How often it happened during the sample. */
static double count_of(const struct doctor *d, const json_t *refusal)
{
    static const char *const keys[] = {"pid", "what", "status", NULL};
    double now = ctl_value(refusal, "count");

    if (d->seconds <= 0) {
        return 0;
    }
    json_text_each(json_object_get(d->before, "refusals"), i, r) {
        if (same_in(r, refusal, keys) && ctl_value(r, "count") <= now) {
            return now - ctl_value(r, "count");
        }
    }
    return now;
}

/* What processes of one program were refused for the same reason. A command that is repeated runs
 * as a new process each time. */
struct refusals {
    const json_t *newest;
    double count, all; /* during the sample; in all */
    size_t processes;
    char who[192]; /* "\"pipectl\" (3 processes, the last pid 762, user 0)" */
};

/* Return: number @first of the newest status is the first of its kind. */
static bool gather(const struct doctor *d, size_t first, struct refusals *ret)
{
    static const char *const keys[] = {"client", "uid", "what", "status", "why", NULL};
    const json_t *list = json_object_get(d->after, "refusals");
    char many[48] = "";

    *ret = (struct refusals){.newest = json_array_get(list, first)};
    json_text_each(list, i, r) {
        if (!same_in(r, ret->newest, keys)) {
            continue;
        }
        if (i < first) {
            return false;
        }
        ret->count += count_of(d, r);
        ret->all += ctl_value(r, "count");
        ret->processes++;
        ret->newest = ctl_value(r, "ago_s") < ctl_value(ret->newest, "ago_s") ? r : ret->newest;
    }
    if (ret->processes > 1) {
        snprintf(many, sizeof(many), "%zu processes, the last ", ret->processes);
    }
    snprintf(ret->who, sizeof(ret->who), "\"%.64s\" (%spid %.0f, user %.0f)",
             ctl_text(ret->newest, "client"), many, ctl_value(ret->newest, "pid"),
             ctl_value(ret->newest, "uid"));
    return true;
}

/* Share of all frames that were answered meanwhile. */
static double share_of(const struct doctor *d, double count)
{
    double all = count;

    DOCTOR_EACH_MODEL(d, i, m) {
        all += doctor_answered(d, m);
    }
    return count > 0 ? count / all : NAN;
}

/* Writes " (limits.x is 5)" if the reason names a key without its value. */
static void value_of_key(const struct doctor *d, const char *why, char *ret, size_t bytes)
{
    *ret = '\0';
    json_text_each(json_object_get(d->sample, "config"), i, row) {
        const char *key = ctl_text(row, "key"), *at = strstr(why, key);

        if (strchr(key, '.') && at && strncmp(at + strlen(key), " is ", 4) != 0 &&
            (at[strlen(key)] < 'a' || at[strlen(key)] > 'z') && at[strlen(key)] != '_') {
            snprintf(ret, bytes, " (%s is %.63s)", key, ctl_any(row, "value").text);
        }
    }
}

static bool ends_sentence(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && strchr(".?!", text[n - 1]);
}

/* "2 streams refused in 2.0 s, 5 in all", or "5 streams refused" if none was lately. */
static void how_often(const struct doctor *d, const struct refusals *r, char *ret, size_t bytes)
{
    const char *what = ctl_text(r->newest, "what");

    if (r->count > 0 && r->all > r->count) {
        snprintf(ret, bytes, "%.0f %s%s refused in %.1f s, %.0f in all", r->count, what,
                 base_plural(r->count), d->seconds, r->all);
    } else {
        snprintf(ret, bytes, "%.0f %s%s refused", r->all, what, base_plural(r->all));
    }
}

void doctor_refused(struct doctor *d)
{
    size_t count = json_array_size(json_object_get(d->after, "refusals"));

    for (size_t i = 0; i < count; i++) {
        struct refusals r;
        bool first = gather(d, i, &r);
        const char *status = ctl_text(r.newest, "status"), *why = ctl_text(r.newest, "why");
        char value[128], often[160];

        if (!first || strcmp(status, "dropped") == 0 || strcmp(status, "deadline_exceeded") == 0 ||
            (r.count == 0 && ctl_value(r.newest, "ago_s") > LATELY_S)) {
            continue;
        }
        value_of_key(d, why, value, sizeof(value));
        how_often(d, &r, often, sizeof(often));
        doctor_find(d, NULL,
                    strcmp(ctl_text(r.newest, "what"), "frame") == 0 ? share_of(d, r.count) : NAN,
                    "Do as the reason says: raise the key that it names (pipectl config shows all, "
                    "then pipectl reload), or change the client. docs/protocol.md explains each "
                    "status.",
                    "Client %s: %s, the last %.0f s ago, as %s: %s%s%s", r.who, often,
                    ctl_value(r.newest, "ago_s"), status, why, value,
                    *value || !ends_sentence(why) ? "." : "");
    }
}

static void lost(struct doctor *d, const char *status, const char *advice, const char *how)
{
    size_t count = json_array_size(json_object_get(d->after, "refusals"));

    for (size_t i = 0; i < count; i++) {
        struct refusals r;

        if (gather(d, i, &r) && strcmp(ctl_text(r.newest, "status"), status) == 0 && r.count > 0) {
            doctor_find(d, NULL, share_of(d, r.count), advice,
                        "Client %s: %.0f frames in %.1f s, %.0f %% of all, %s: %s.", r.who, r.count,
                        d->seconds, 100 * share_of(d, r.count), how, ctl_text(r.newest, "why"));
        }
    }
}

void doctor_deadlines(struct doctor *d)
{
    lost(d, "deadline_exceeded",
         "Send fewer frames, give them more time, or use policy latest; pipectl retune --objective "
         "latency looks for a plan with a shorter way.",
         "missed their deadline");
}

void doctor_dropped(struct doctor *d)
{
    lost(d, "dropped",
         "Policy latest asks for it. Send no more frames than the plan serves (pipectl status: "
         "fps) if they cost something to make.",
         "gave way to newer ones");
}

void doctor_pictures(struct doctor *d)
{
    const json_t *largest = NULL;

    DOCTOR_EACH_MODEL(d, n, m) {
        const char *name = ctl_text(m, "name");
        const json_t *wants = json_object_get(
            json_text_same(d->models, "name", json_object_get(m, "name")), "preprocess");
        double share = doctor_pictures_share(d, m), most = 0;
        char advice[DOCTOR_TEXT];

        largest = NULL;
        json_text_each(json_object_get(d->after, "clients"), i, c) {
            json_text_each(json_object_get(c, "opened"), k, s) {
                const json_t *p = json_object_get(s, "picture");
                double pixels = json_number_value(json_array_get(p, 0)) *
                                json_number_value(json_array_get(p, 1));

                if (strcmp(ctl_text(s, "model"), name) == 0 && pixels > most) {
                    most = pixels;
                    largest = s;
                }
            }
        }
        if (share < PICTURES || !largest) {
            continue;
        }
        snprintf(advice, sizeof(advice),
                 "Send pictures of the model's size, %.0fx%.0f: let the camera or the sender "
                 "scale them.",
                 ctl_value(wants, "width"), ctl_value(wants, "height"));
        doctor_find(
            d, name, doctor_winnable(share, doctor_pictures_busy(d, m)), advice,
            "Preprocessing takes %.0f %% of a frame: pictures of up to %.0fx%.0f (%s) become "
            "%.0fx%.0f.",
            100 * share, json_number_value(json_array_get(json_object_get(largest, "picture"), 0)),
            json_number_value(json_array_get(json_object_get(largest, "picture"), 1)),
            ctl_text(largest, "pixfmt"), ctl_value(wants, "width"), ctl_value(wants, "height"));
    }
}

/* ---- users for whom the loop works so much that they rest ---- */

#define LOOP_SHARE 0.05  /* of its time, that makes a user worth a word */
#define OTHERS 0.002     /* of it is more than the questions of doctor */
#define PUT_OFF_LEAST 10 /* times a second */
#define NAMED 3          /* clients of a user */

/* How much a number of a user has grown; users come and go. */
static double loop_more(const struct doctor *d, const json_t *user, const char *key)
{
    const json_t *before =
        json_text_same(json_object_get(d->before, "loop"), "uid", json_object_get(user, "uid"));
    double more = doctor_more(before, user, key);

    return isnan(more) ? ctl_value(user, key) : more;
}

/* Does anybody else want something of the loop? Its own questions are nothing. */
static bool has_others(const struct doctor *d, const json_t *user)
{
    json_text_each(json_object_get(d->after, "loop"), i, u) {
        if (u != user && loop_more(d, u, "spent_s") > OTHERS * d->seconds) {
            return true;
        }
    }
    return false;
}

/* Writes `"a" (pid 1), "b" (pid 2)`, or that only the control socket is used. */
static void clients_of(const struct doctor *d, double uid, char *ret, size_t bytes)
{
    size_t named = 0;

    *ret = '\0';
    json_text_each(json_object_get(d->after, "clients"), i, c) {
        if (ctl_value(c, "uid") == uid && named < NAMED) {
            base_append(ret, bytes, "%s\"%s\" (pid %.0f)", named ? ", " : "", ctl_text(c, "client"),
                        ctl_value(c, "pid"));
            named++;
        }
    }
    if (named == 0) {
        snprintf(ret, bytes, "none for frames; calls of the control socket");
    }
}

void doctor_loop_user(struct doctor *d)
{
    json_text_each(json_object_get(d->after, "loop"), i, u) {
        double share = loop_more(d, u, "spent_s") / d->seconds;
        double put_off = loop_more(d, u, "put_off"), uid = ctl_value(u, "uid");
        char clients[256];

        if (!(d->seconds > 0) || share < LOOP_SHARE || put_off < PUT_OFF_LEAST * d->seconds ||
            !has_others(d, u)) {
            continue;
        }
        clients_of(d, uid, clients, sizeof(clients));
        doctor_find(d, NULL, NAN,
                    "Other users do not wait for it. If it is slow itself: let it send fewer and "
                    "larger messages, and ask the control socket less often; limits.user_weights "
                    "gives a user more of the loop.",
                    "User %.0f keeps the daemon's loop at work for %.0f %% of the time, and was "
                    "made to rest %.0f time%s in %.1f s so that others come first. Its clients: "
                    "%s.",
                    uid, 100 * share, put_off, base_plural(put_off), d->seconds, clients);
    }
}
