/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/control.h - the control socket: Varlink calls in, replies out in the same order
 *
 * A call is answered at once, or keeps its struct dmn_call until something has happened (a plan
 * drained, a model was loaded). Until then the connection's next call waits. A call outlives its
 * connection; a reply without a connection is dropped. This room reads the others; none of them
 * reads this room.
 *
 * Calls begin in the loop's turns (daemon/service/loop_turns.h), so those of one user, however
 * many, do not hold up others. A connection is read again when its calls were begun and its answers
 * are not too many. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/boards/over_boards.h"
#include "daemon/config/state_file.h"
#include "daemon/machine/machine.h"
#include "daemon/models/done.h"
#include "daemon/models/model_copies.h"
#include "daemon/models/models.h"
#include "daemon/plans/switch.h"
#include "daemon/service/acceptor.h"
#include "daemon/service/loop_turns.h"
#include "daemon/service/users.h"
#include "daemon/service/work.h"
#include "ipc/varlink.h"
#include "kernels/lib/blas.h"

struct dmn_control;
struct dmn_control_conn;
struct dmn_frames;
struct dmn_load_call;
struct dmn_tracing;
struct dmn_plans;

/* The daemon as control/ sees it: its state and its requests. daemon/ fills it in and keeps it up
 * to date. */
enum dmn_state {
    DMN_STATE_SERVING,
    DMN_STATE_TUNING,
    DMN_STATE_DEGRADED, /* something requested does not serve or makes no progress */
    DMN_STATE_DRAINING,
};
extern const char *const dmn_state_names[]; /* by enum dmn_state */

struct dmn_host {
    uint64_t started_ns;
    double started_s; /* wall clock, since 1970 */
    struct krn_blas_status blas;
    uint64_t reloads, reload_failures;
    void *ctx; /* for the functions below */
    enum dmn_state (*state)(const void *ctx);
    /* Reads the configuration again; @done is called at the end. Return: false, and @done is not
     * called, if a reload is in progress or the daemon is stopping. */
    bool (*reload)(void *ctx, struct dmn_done done);
};

#define DMN_METHODS_MAX 48u
/* Bytes of unread replies: with more, a client is disconnected; with more, its next call waits. */
#define DMN_CALL_BACKLOG_MAX (4u << 20)
#define DMN_CALL_AHEAD_MAX (DMN_CALL_BACKLOG_MAX / 2)

/* One reply for all who asked before it was made, of a method that changes nothing and was given no
 * parameters. A reply that was begun after a call had come is as new as one made for that call, so
 * calls that wait behind each other, or on several connections, cost one reply and copies of it. A
 * call that changes something ends that. All zeros is none. */
struct dmn_shared_reply {
    char *data; /* owned; NULL: none */
    size_t bytes;
    uint64_t begun_ns; /* it was begun then */
};

struct dmn_call {
    struct dmn_control_conn *conn; /* NULL once the connection is gone */
    struct dmn_control *control;
    LIST_ENTRY(dmn_call) subscriber; /* linked while subscribed */
    LIST_ENTRY(dmn_call) searching;  /* linked while dmn_link_search() asks who its client is */
    char *method;                    /* owned */
    json_t *message;                 /* owned; holds the parameters */
    json_t *parameters;              /* borrowed from message */
    bool more, oneway, subscribed;
    struct dmn_shared_reply *shared; /* where its reply is kept for others; NULL: nowhere */
    uint64_t begun_ns;               /* of a shared one */
    /* Its client has gone, and nobody waits for its answer, which it still needs; may be NULL. */
    void (*left)(struct dmn_call *c, void *arg);
    void *left_arg;
    struct {
        json_t *reply, *noted; /* reply: owned; noted: borrowed from it */
        void (*failed)(struct dmn_call *c, int error);
    } kept; /* see dmn_call_keep() */
};

struct dmn_control_conn {
    uv_pipe_t pipe;
    struct dmn_control *control;
    LIST_ENTRY(dmn_control_conn) linked;
    struct dmn_loop_task task; /* begins its calls */
    struct ipc_varlink_reader reader;
    struct dmn_call *call; /* the call in progress */
    struct ucred peer;
    uint64_t since_ns, active_ns; /* it connected; it last sent something or took an answer */
    uint64_t read_ns;           /* it last sent something, or a call that took time was answered */
    int fd[DMN_SENT_FILES_MAX]; /* owned: the newest that came and were not taken, oldest first */
    size_t fd_count;
    bool eof, closing, beginning;
    bool called;           /* its first call came */
    bool overdue;          /* it should have, a tick ago */
    bool large;            /* it may send calls of more than SMALL_MAX; by connections.c */
    bool waits_for_reader; /* its next call waits until the client has read answers */
};

struct dmn_control {
    /* set by the owner before dmn_control_start(); all borrowed */
    struct dmn_machine *machine;
    struct dmn_models *models;
    struct dmn_frames *frames;
    struct dmn_plans *plans;
    struct dmn_boards *boards;
    const struct dmn_host *host;
    struct dmn_users *users; /* dmn_link_search() adds piped-link */
    struct dmn_loop_turns *turns;
    /* state of this room */
    struct dmn_acceptor acceptor;
    LIST_HEAD(, dmn_control_conn) conns;
    size_t count;
    LIST_HEAD(, dmn_call) subscribers;
    LIST_HEAD(, dmn_call) route_calls;               /* those of LinkRoutes */
    struct dmn_control_conn *reporter;               /* that called LinkReport last; NULL: none */
    bool stopping;                                   /* nobody is accepted any more */
    LIST_HEAD(, dmn_load_call) loads;                /* Load calls in progress */
    struct dmn_shared_reply shared[DMN_METHODS_MAX]; /* by method */
    struct {
        struct dmn_job work;
        struct dmn_users found;      /* by the work thread while it works */
        LIST_HEAD(, dmn_call) calls; /* those that wait for it */
        uint64_t again_ns;           /* not before */
        void (*again)(struct dmn_call *c);
    } link_search;               /* written by dmn_link_search() */
    uint64_t told;               /* digest of what was told last; written by events.c */
    struct dmn_tracing *tracing; /* owned; NULL: no trace. Written by tracing.c */
    /* takes every event of Subscribe, borrowed; NULL: nobody traces. Written by tracing.c */
    void (*event_traced)(struct dmn_control *control, json_t *event);
    struct dmn_plans_listener plans_listener;
    struct dmn_models_listener models_listener;
    struct dmn_boards_listener boards_listener;
    char read_buffer[16384]; /* of one read of a connection in a turn of the loop */
};

/** dmn_control_start() - serves on listening socket @fd, which it owns from now on. @file: of the
 * socket, taken; removed at the end. Return: 0 or -errno. */
int dmn_control_start(struct dmn_control *control, int fd, struct ipc_socket_file *file);
void dmn_control_stop_accepting(struct dmn_control *control);
void dmn_control_close_all(struct dmn_control *control);
/** dmn_control_tick() - once a second: closes connections that did not call in time, by
 * DMN_KEY_LIMIT_HANDSHAKE_S. @held_ns: as for dmn_frames_tick(). */
void dmn_control_tick(struct dmn_control *control, uint64_t now_ns, uint64_t held_ns);
/** dmn_control_conn_close() - closes it now; its call's answer goes nowhere. A second call does
 * nothing. */
void dmn_control_conn_close(struct dmn_control_conn *c);
/** dmn_control_conn_done() - closes it if its client has sent all, and has all answers. */
void dmn_control_conn_done(struct dmn_control_conn *c);
/** dmn_control_conn_fd() - Return: its socket, borrowed. */
int dmn_control_conn_fd(const struct dmn_control_conn *c);
/** dmn_control_loads_cancel() - calls off every Load. @why: static. */
void dmn_control_loads_cancel(struct dmn_control *control, const char *why);

/** dmn_call_reply() - replies. A reply never begins the next call at once, so code that walks the
 * models may reply. @parameters: stolen. Ends the call unless @continues. If memory
 * lacked for the parameters (NULL, or ipc_json_lacked()), the connection ends instead. */
void dmn_call_reply(struct dmn_call *c, json_t *parameters, bool continues);
/** dmn_call_error() - replies with an error of io.piped, and why. @error: without "io.piped.". Ends
 * the call. */
__attribute__((format(printf, 3, 4))) void dmn_call_error(struct dmn_call *c, const char *error,
                                                          const char *format, ...);
/** dmn_call_service_error() - the same of org.varlink.service. @parameter: that @text is; NULL:
 * none. */
void dmn_call_service_error(struct dmn_call *c, const char *error, const char *parameter,
                            const char *text);
/** dmn_call_unread() - Return: bytes of answers that its client has not read; SIZE_MAX: the
 * connection is gone. */
size_t dmn_call_unread(const struct dmn_call *c);
/** dmn_call_take_fd() - Return: the file descriptor that came with the call, owned by the caller;
 * -1: none. */
int dmn_call_take_fd(struct dmn_call *c);
/** dmn_call_take_fds() - the same for the newest @count, in their order of arrival; closes
 * the others. Return: false: fewer came; none is taken. */
bool dmn_call_take_fds(struct dmn_call *c, size_t count, int *ret);
/** dmn_call_refuse() - replies with the error that matches @o. Ends the call. */
void dmn_call_refuse(struct dmn_call *c, const struct dmn_outcome *o);
/** dmn_call_done() - a dmn_done_fn with the call as context: replies with success or the error. */
void dmn_call_done(void *call, const struct dmn_outcome *o);
/** dmn_call_keep() - answers a call when a state file is written
 *
 * @reply: its parameters, reference taken. @noted: borrowed from it: where a failure is noted, as
 * "note"; NULL: a failure calls @failed, which answers the call instead. Return: to be given to
 * whatever writes the file, just once. */
struct dmn_state_kept dmn_call_keep(struct dmn_call *c, json_t *reply, json_t *noted,
                                    void (*failed)(struct dmn_call *c, int error));
/** dmn_call_shared() - answers it with another call's reply, if @s is new enough; else its reply is
 * kept there for others. Return: it was answered. */
bool dmn_call_shared(struct dmn_call *c, struct dmn_shared_reply *s);
/** dmn_control_forget() - frees the shared replies. */
void dmn_control_forget(struct dmn_control *control);
/** dmn_control_event() - sends an event to every subscriber. @event: stolen. */
void dmn_control_event(struct dmn_control *control, json_t *event);

/* events.c */
/** dmn_control_progress() - once a second: tells subscribers how far loads and a profile are, where
 * that has changed. */
void dmn_control_progress(struct dmn_control *control);
/** dmn_control_listen() - starts to forward events of the other rooms to subscribers. */
void dmn_control_listen(struct dmn_control *control);
/** dmn_control_draining() - tells subscribers that the daemon is stopping. */
void dmn_control_draining(struct dmn_control *control);
