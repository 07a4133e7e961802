/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients' frames on real pipelines, without a daemon: a socket pair, the rooms frames/ and
 * models/, and a client that counts. Nothing is collected before the test says so, so a pipeline of
 * two frames is full after two.
 */
#include <sys/socket.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/frames/clients.h"
#include "daemon/frames/frames.h"
#include "daemon/frames/polling.h"
#include "daemon/machine/machine.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

#define IN_FLIGHT 2u
#define UNITS 3u
#define FRAMES_MAX 4096u
#define STREAMS 2u
#define SENT_MAX 24u /* unanswered: more than a ring takes, less than a socket */

struct fixture {
    struct dmn_machine machine;
    struct dmn_models models;
    struct dmn_loop_turns turns;
    struct dmn_frames frames;
    struct dmn_config *config;
    struct dmn_account account;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct rig_wake wake;
    uv_loop_t loop;
    struct dmn_model *m;
    int fd; /* the client's end */
    bool closed;
    uint8_t in[1 << 20];
    size_t used;
    /* what the client saw, of each stream */
    uint64_t sent[STREAMS + 1], answered[STREAMS + 1], last[STREAMS + 1];
    enum ipc_status status[STREAMS + 1][FRAMES_MAX];
    char text[IPC_TEXT_MAX]; /* of the newest answer without output */
    unsigned unloading, wrong;
    char order[64]; /* of stream 1: r for a RESULT, (TEXT) for a DESCRIBED */
};

static void note(struct fixture *f, const char *text, size_t bytes)
{
    size_t used = strlen(f->order);

    snprintf(f->order + used, sizeof(f->order) - used, "%.*s", (int)bytes, text);
}

static struct dmn_model *model_new(struct fixture *f, const char *name)
{
    struct pl_options o = {.frames = IN_FLIGHT, .notify = rig_notify, .notify_arg = &f->wake};
    struct dmn_model *m = calloc(1, sizeof(*m));
    struct pl_plan plan;
    char error[160];

    snprintf(m->name, sizeof(m->name), "%s", name);
    m->of = &f->models;
    m->model = &f->net.model;
    m->input_bytes = m->output_bytes = f->net.elements * sizeof(float);
    if (pl_plan_parse("0-2@big", &f->eps, UNITS, error, sizeof(error), &plan) < 0 ||
        pl_new(f->net.net, &f->eps, &plan, &o, &m->pipe) != 0 ||
        f->frames.listener.starting(&f->frames, m) != 0) {
        fprintf(stderr, "no model: %s\n", error);
        exit(1);
    }
    m->next = f->models.models;
    f->models.models = m;
    return m;
}

/* Its network is the fixture's. */
static void model_free(struct dmn_model *m)
{
    m->model = NULL;
    dmn_model_destroy(m);
}

/* What the daemon's loop does when a socket wakes it. */
static void take_in(struct fixture *f)
{
    dmn_frames_take_in(&f->frames);
    while (dmn_loop_may_wait(&f->turns) == 0) {
        dmn_loop_turn(&f->turns);
        dmn_frames_settle(&f->frames);
    }
}

static void put(struct fixture *f, struct ipc_header h, const void *payload, size_t bytes,
                const void *tail, size_t tail_bytes)
{
    uint8_t b[IPC_HEADER_BYTES + 4096];

    h.version = IPC_VERSION;
    h.length = (uint32_t)(bytes + tail_bytes);
    ipc_put_header(&h, b);
    memcpy(b + IPC_HEADER_BYTES, payload, bytes);
    memcpy(b + IPC_HEADER_BYTES + bytes, tail ? tail : "", tail_bytes);
    T_EQ(send(f->fd, b, IPC_HEADER_BYTES + h.length, MSG_NOSIGNAL), IPC_HEADER_BYTES + h.length);
    take_in(f);
}

static void result(struct fixture *f, const struct ipc_header *h, const uint8_t *payload)
{
    size_t tail = h->length - IPC_RESULT_BYTES;
    const float *want = f->net.answers[h->frame % TINY_INPUTS];

    f->wrong += h->frame <= f->last[h->stream] || h->frame > f->sent[h->stream];
    f->last[h->stream] = h->frame;
    f->answered[h->stream]++;
    f->status[h->stream][h->frame] = (enum ipc_status)h->status;
    if (h->status == IPC_OK) {
        f->wrong += tail != f->net.elements * sizeof(float) ||
                    memcmp(payload + IPC_RESULT_BYTES, want, tail) != 0;
    } else {
        snprintf(f->text, sizeof(f->text), "%.*s", (int)tail, payload + IPC_RESULT_BYTES);
    }
}

/* Takes in what the daemon wrote. */
static void look(struct fixture *f)
{
    struct ipc_header h;
    size_t at = 0;
    ssize_t n;

    while ((n = recv(f->fd, f->in + f->used, sizeof(f->in) - f->used, MSG_DONTWAIT)) > 0) {
        f->used += (size_t)n;
    }
    while (f->used - at >= IPC_HEADER_BYTES && ipc_get_header(f->in + at, &h) == 0 &&
           f->used - at >= IPC_HEADER_BYTES + h.length) {
        const uint8_t *payload = f->in + at + IPC_HEADER_BYTES;
        struct ipc_event_msg e;

        if (h.type == IPC_RESULT) {
            result(f, &h, payload);
            note(f, "r", h.stream == 1);
        } else if (h.type == IPC_DESCRIBED && h.stream == 1) {
            note(f, "(", 1);
            note(f, (const char *)payload, h.length);
            note(f, ")", 1);
        } else if (h.type == IPC_EVENT && ipc_get_event(payload, IPC_EVENT_BYTES, &e) == 0) {
            f->unloading += e.event == IPC_EVENT_UNLOADING;
        } else {
            f->wrong += h.type == IPC_ERROR || h.status != IPC_OK;
        }
        at += IPC_HEADER_BYTES + h.length;
    }
    memmove(f->in, f->in + at, f->used - at);
    f->used -= at;
}

static void open_stream(struct fixture *f, uint32_t id, enum ipc_policy policy, uint32_t credits)
{
    struct ipc_open o = {.policy = policy, .credits = credits, .priority = id};
    uint8_t b[IPC_OPEN_BYTES];

    ipc_put_open(&o, b);
    put(f, (struct ipc_header){.type = IPC_OPEN, .stream = id}, b, sizeof(b), NULL, 0);
    look(f);
}

static void send_frame(struct fixture *f, uint32_t id)
{
    size_t bytes = f->net.elements * sizeof(float);
    struct ipc_frame m = {.in_bytes = bytes};
    uint8_t b[IPC_FRAME_BYTES];

    f->sent[id]++;
    ipc_put_frame(&m, b);
    put(f, (struct ipc_header){.type = IPC_INLINE, .stream = id, .frame = f->sent[id]}, b,
        sizeof(b), f->net.inputs[f->sent[id] % TINY_INPUTS], bytes);
}

static void send_frames(struct fixture *f, uint32_t id, unsigned count)
{
    while (count-- > 0) {
        send_frame(f, id);
    }
    look(f);
}

static void cancel(struct fixture *f, uint32_t id, uint64_t frame)
{
    put(f, (struct ipc_header){.type = IPC_CANCEL, .stream = id, .frame = frame}, "", 0, NULL, 0);
    look(f);
}

/* What the daemon's loop does when a team wakes it, and then a socket. */
static void collect(struct fixture *f)
{
    struct dmn_model *lists[] = {f->models.models, f->models.leaving};

    for (size_t i = 0; i < base_array_count(lists); i++) {
        for (struct dmn_model *m = lists[i]; m; m = m->next) {
            dmn_model_collect(m);
        }
    }
    take_in(f);
    look(f);
}

/* Until everything is answered. */
static void serve(struct fixture *f)
{
    uint64_t open;

    do {
        collect(f);
        open = 0;
        for (size_t i = 1; i <= STREAMS; i++) {
            open += f->sent[i] - f->answered[i];
        }
    } while (open > 0 && rig_wait(&f->wake));
    T_EQ(open, 0);
}

static void set_up(struct fixture *f)
{
    struct ipc_hello hello = {
        .version_min = 1, .version_max = IPC_VERSION, .features = IPC_FEATURE_DESCRIBED};
    char error[DMN_CONFIG_ERROR_MAX] = "";
    uint8_t b[IPC_HELLO_BYTES];
    int fds[2];

    memset(f, 0, sizeof(*f));
    tiny_net_init(&f->net, UNITS, 3, 8);
    rig_eps(&f->eps, false);
    sem_init(&f->wake.sem, 0, 0);
    T_EQ(dmn_config_load(NULL, false, error, &f->config), 0);
    T_EQ(uv_loop_init(&f->loop), 0);
    f->machine.config = &f->config;
    f->models.machine = &f->machine;
    dmn_frames_init(&f->frames, &f->loop, &f->config, &f->models);
    dmn_loop_turns_init(&f->turns);
    f->frames.turns = &f->turns;
    f->m = model_new(f, "tiny");
    T_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    f->fd = fds[0];
    T_EQ(dmn_polling_start(&f->frames, fds[1], &f->account, 0), 0);
    ipc_put_hello(&hello, b);
    put(f, (struct ipc_header){.type = IPC_HELLO}, b, sizeof(b), NULL, 0);
    look(f);
}

static void take_down(struct fixture *f)
{
    while (f->models.leaving) {
        model_free(f->models.leaving);
    }
    while (f->models.models) {
        model_free(f->models.models);
    }
    dmn_frames_settle(&f->frames);
    look(f);
    for (size_t i = 1; i <= STREAMS; i++) {
        T_EQ(f->answered[i], f->sent[i]);
    }
    T_EQ(f->wrong, 0);
    dmn_frames_close_all(&f->frames);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&f->loop), 0);
    close(f->fd);
    T_EQ(f->account.connections, 0);
    dmn_loop_turns_deinit(&f->turns);
    dmn_config_free(f->config);
    sem_destroy(&f->wake.sem);
    tiny_net_deinit(&f->net);
    free(f);
}

static struct fixture *fixture_new(void)
{
    struct fixture *f = malloc(sizeof(*f));

    set_up(f);
    return f;
}

TEST(block_waits_for_room)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 6);
    T_EQ(f->m->running, IN_FLIGHT);
    T_EQ(dmn_model_waiting(f->m), 4);
    T_EQ(f->answered[1], 0);
    serve(f);
    for (size_t i = 1; i <= 6; i++) {
        T_EQ(f->status[1][i], IPC_OK);
    }
    T_EQ(f->m->running, 0);
    T_EQ(f->m->stats.admitted, 6);
    T_EQ(f->m->stats.answered, 6);
    T_EQ(f->m->stats.collected, 6);
    T_EQ(dmn_clients_stats(f->m)->by_status[IPC_OK], 6);
    take_down(f);
}

TEST(latest_drops_what_waits_for_a_newer_one)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_LATEST, 8);
    send_frames(f, 1, 6);
    T_EQ(dmn_model_waiting(f->m), 1);
    serve(f);
    for (size_t i = 1; i <= 6; i++) {
        T_EQ(f->status[1][i], i <= IN_FLIGHT || i == 6 ? IPC_OK : IPC_DROPPED);
    }
    T_EQ(f->m->stats.dropped, 3);
    take_down(f);
}

TEST(reject_answers_at_once_when_there_is_no_room)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_REJECT, 8);
    send_frames(f, 1, 4);
    T_EQ(dmn_model_waiting(f->m), 0);
    serve(f);
    for (size_t i = 1; i <= 4; i++) {
        T_EQ(f->status[1][i], i <= IN_FLIGHT ? IPC_OK : IPC_RESOURCE_EXHAUSTED);
    }
    T_STR(f->text, "the pipeline is full");
    take_down(f);
}

TEST(without_credit_a_frame_is_refused_in_its_turn)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_BLOCK, 3);
    send_frames(f, 1, 5);
    T_EQ(f->answered[1], 0);
    serve(f);
    for (size_t i = 1; i <= 5; i++) {
        T_EQ(f->status[1][i], i <= 3 ? IPC_OK : IPC_RESOURCE_EXHAUSTED);
    }
    take_down(f);
}

TEST(a_cancelled_frame_is_answered_in_its_turn)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 5);
    cancel(f, 1, 4);
    T_EQ(dmn_model_waiting(f->m), 2);
    T_EQ(f->answered[1], 0);
    serve(f);
    for (size_t i = 1; i <= 5; i++) {
        T_EQ(f->status[1][i], i == 4 ? IPC_CANCELLED : IPC_OK);
    }
    take_down(f);
}

/* Of admitted frames. */
static void check_counts(const struct dmn_model *m)
{
    T_EQ(m->stats.answered + m->stats.dropped + m->stats.failed + dmn_clients_in_flight(m),
         m->stats.admitted);
}

TEST(a_hot_swap_moves_streams_and_what_waits)
{
    struct fixture *f = fixture_new();
    struct dmn_model *old = f->m, *new;

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    open_stream(f, 2, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 4);
    send_frames(f, 2, 3);
    new = model_new(f, "tiny");
    T_TRUE(dmn_model_replace(old, new));
    T_EQ(old->running, IN_FLIGHT);
    T_EQ(dmn_model_waiting(old), 0);
    T_EQ(dmn_model_waiting(new), 5);
    check_counts(new);
    T_EQ(dmn_clients_in_flight(new), IN_FLIGHT);
    dmn_model_unload(old, (struct dmn_done){0});
    T_EQ(f->unloading, 0); /* its clients are the new one's */
    send_frame(f, 2);
    serve(f);
    for (size_t i = 1; i <= 4; i++) {
        T_EQ(f->status[1][i], IPC_OK);
        T_EQ(f->status[2][i], IPC_OK);
    }
    T_EQ(old->running, 0);
    T_EQ(old->stats.collected, IN_FLIGHT);
    T_EQ(new->stats.collected, 8 - IN_FLIGHT);
    T_EQ(new->stats.admitted, 8);
    T_EQ(new->stats.here, 8);
    check_counts(new);
    old->model = NULL;
    dmn_model_after(old); /* it drained */
    T_TRUE(f->models.leaving == NULL);
    take_down(f);
}

/* What a model computed is decoded as its own sidecar says, also if another serves by then. */
TEST(answers_come_after_the_description_of_their_model)
{
    static char text[] = "new";
    struct fixture *f = fixture_new();
    struct dmn_model *old = f->m;

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, IN_FLIGHT + 2);
    f->net.model.output = text;
    T_TRUE(dmn_model_replace(old, model_new(f, "tiny")));
    dmn_model_unload(old, (struct dmn_done){0});
    serve(f);
    T_STR(f->order, "rr(new)rr");
    old = f->models.models;
    T_TRUE(dmn_model_replace(old, model_new(f, "tiny"))); /* it says the same */
    dmn_model_unload(old, (struct dmn_done){0});
    send_frames(f, 1, 1);
    f->net.model.output = NULL;
    old = f->models.models;
    T_TRUE(dmn_model_replace(old, model_new(f, "tiny")));
    dmn_model_unload(old, (struct dmn_done){0});
    send_frames(f, 1, 1);
    serve(f);
    T_STR(f->order, "rr(new)rrr()r");
    take_down(f);
}

TEST(a_model_that_looks_different_keeps_its_streams)
{
    struct fixture *f = fixture_new();
    struct dmn_model *other = model_new(f, "other");

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    other->image_width = f->m->image_width + 1;
    T_TRUE(!dmn_model_replace(other, f->m));
    take_down(f);
}

static void gone(void *ctx, const struct dmn_outcome *o)
{
    *(unsigned *)ctx += o == NULL;
}

TEST(an_unload_answers_what_was_admitted_and_refuses_the_rest)
{
    struct fixture *f = fixture_new();
    unsigned told = 0;

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 4);
    dmn_model_unload(f->m, (struct dmn_done){gone, &told});
    T_TRUE(dmn_model_find(&f->models, "tiny") == NULL);
    send_frames(f, 1, 1);
    T_EQ(f->unloading, 1);
    f->m->model = NULL;
    dmn_model_after(f->m);
    T_EQ(told, 0); /* frames wait */
    serve(f);
    for (size_t i = 1; i <= 5; i++) {
        T_EQ(f->status[1][i], i <= 4 ? IPC_OK : IPC_UNAVAILABLE);
    }
    dmn_model_after(f->m);
    T_EQ(told, 1);
    send_frames(f, 1, 1);
    T_EQ(f->status[1][6], IPC_UNAVAILABLE);
    T_STR(f->text, "the model was unloaded");
    take_down(f);
}

TEST(the_end_of_a_model_answers_everything)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 5);
    model_free(f->m);
    dmn_frames_settle(&f->frames);
    look(f);
    T_EQ(f->answered[1], 5);
    for (size_t i = 1; i <= 5; i++) {
        T_EQ(f->status[1][i], IPC_UNAVAILABLE);
    }
    take_down(f);
}

TEST(a_client_that_goes_leaves_nothing_behind)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, IPC_POLICY_BLOCK, 8);
    send_frames(f, 1, 5);
    dmn_conn_close(dmn_conn_of(LIST_FIRST(&f->frames.server.conns)));
    T_EQ(dmn_model_waiting(f->m), 0);
    T_TRUE(!LIST_EMPTY(&f->m->clients->streams)); /* the pipeline has its frames */
    while (f->m->running > 0 && rig_wait(&f->wake)) {
        dmn_model_collect(f->m);
    }
    T_TRUE(LIST_EMPTY(&f->m->clients->streams));
    T_EQ(f->m->stats.dropped, IN_FLIGHT); /* nobody could be told of the others */
    check_counts(f->m);
    f->answered[1] = f->sent[1];
    take_down(f);
}

/* Whatever happens, in whatever order: one answer for each frame, in order, and the right one. */
TEST(every_frame_is_answered_once_in_order)
{
    struct fixture *f = fixture_new();

    open_stream(f, 1, (enum ipc_policy)t_range(0, IPC_POLICY_REJECT), 6);
    open_stream(f, 2, (enum ipc_policy)t_range(0, IPC_POLICY_REJECT), 9);
    for (int i = 0; i < t_times(600); i++) {
        uint32_t id = (uint32_t)t_range(1, STREAMS);

        switch (t_range(0, 5)) {
        case 0:
            collect(f);
            break;
        case 1:
            cancel(f, id, f->sent[id] - (uint64_t)t_range(0, 3));
            break;
        case 2:
            if (!f->models.leaving) {
                struct dmn_model *old = f->models.models;

                T_TRUE(dmn_model_replace(old, model_new(f, "tiny")));
                dmn_model_unload(old, (struct dmn_done){0});
            }
            break;
        case 3:
            if (f->models.leaving) {
                struct mdl_model *model = base_take(f->models.leaving->model);
                struct dmn_model *leaving = f->models.leaving;

                dmn_model_after(leaving);
                if (f->models.leaving) {
                    leaving->model = model;
                }
            }
            break;
        default:
            if (f->sent[id] - f->answered[id] > SENT_MAX) {
                serve(f);
            }
            send_frames(f, id, (unsigned)t_range(1, 4));
        }
        T_TRUE(f->models.models->stats.answered + dmn_clients_in_flight(f->models.models) <=
               f->models.models->stats.admitted);
    }
    serve(f);
    take_down(f);
}

TEST_MAIN()
