/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/daemon/streams_rig.h"

#include <sys/socket.h>

static void note(struct fixture *f, const char *text, size_t bytes)
{
    size_t used = strlen(f->order);

    snprintf(f->order + used, sizeof(f->order) - used, "%.*s", (int)bytes, text);
}

struct dmn_model *model_new(struct fixture *f, const char *name)
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

void model_free(struct dmn_model *m)
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
    memcpy(b, &h, sizeof(h));
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

void look(struct fixture *f)
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

void open_stream(struct fixture *f, uint32_t id, enum ipc_policy policy, uint32_t credits)
{
    struct ipc_open o = {.policy = policy, .credits = credits, .priority = id};
    uint8_t b[IPC_OPEN_BYTES];

    memcpy(b, &o, sizeof(o));
    put(f, (struct ipc_header){.type = IPC_OPEN, .stream = id}, b, sizeof(b), NULL, 0);
    look(f);
}

void send_frame(struct fixture *f, uint32_t id)
{
    size_t bytes = f->net.elements * sizeof(float);
    struct ipc_frame m = {.in_bytes = bytes};
    uint8_t b[IPC_FRAME_BYTES];

    f->sent[id]++;
    memcpy(b, &m, sizeof(m));
    put(f, (struct ipc_header){.type = IPC_INLINE, .stream = id, .frame = f->sent[id]}, b,
        sizeof(b), f->net.inputs[f->sent[id] % TINY_INPUTS], bytes);
}

void send_frames(struct fixture *f, uint32_t id, unsigned count)
{
    while (count-- > 0) {
        send_frame(f, id);
    }
    look(f);
}

void cancel(struct fixture *f, uint32_t id, uint64_t frame)
{
    put(f, (struct ipc_header){.type = IPC_CANCEL, .stream = id, .frame = frame}, "", 0, NULL, 0);
    look(f);
}

void collect(struct fixture *f)
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

void serve(struct fixture *f)
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
    T_EQ(dmn_peer_start(&f->frames, fds[1], &f->account, 0), 0);
    memcpy(b, &hello, sizeof(hello));
    put(f, (struct ipc_header){.type = IPC_HELLO}, b, sizeof(b), NULL, 0);
    look(f);
}

void take_down(struct fixture *f)
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

struct fixture *fixture_new(void)
{
    struct fixture *f = malloc(sizeof(*f));

    set_up(f);
    return f;
}
