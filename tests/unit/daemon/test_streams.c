/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of clients: policies, credits, models that change under them, and clients that go. */
#include "tests/unit/daemon/streams_rig.h"

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
    T_EQ(f->m->clients->stats.by_status[IPC_OK], 6);
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
    T_EQ(m->stats.answered + m->stats.dropped + m->stats.failed + dmn_frames_in_flight(m),
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
    T_EQ(dmn_frames_in_flight(new), IN_FLIGHT);
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
    dmn_peer_close(dmn_peer_of(LIST_FIRST(&f->frames.server.conns)));
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
        T_TRUE(f->models.models->stats.answered + dmn_frames_in_flight(f->models.models) <=
               f->models.models->stats.admitted);
    }
    serve(f);
    take_down(f);
}

TEST_MAIN()
