/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl trace: records what the daemon does into a file for ui.perfetto.dev. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/trace/trace.h"

struct recording {
    const struct ctl_options *options;
    struct trace_spool *spool;
    struct trace_file *file;     /* NULL before the first batch */
    struct trace_reader *reader; /* the same */
    json_t *lost, *end;          /* owned: of the last batch */
    uint64_t began_ns;
};

static int take_args(int argc, char **argv, struct ctl_options *o)
{
    int rc = ctl_take_all(argc, argv, o, NULL);

    if (rc == CTL_DONE && !o->output) {
        return ctl_usage(argv[0], "--output FILE is missing");
    }
    if (rc == CTL_DONE && (o->ring_kib & (o->ring_kib - 1)) != 0) {
        return ctl_usage(argv[0], "--ring-kib needs a power of two from 4 to 16384, not %u",
                         o->ring_kib);
    }
    return rc;
}

/* Ctrl-C shuts our side of the connection: the daemon ends the trace and sends the rest. */
static volatile sig_atomic_t control_sock = -1;

static void on_signal(int number)
{
    shutdown(control_sock, SHUT_WR);
}

static void listen_to_signals(struct ctl_control *control)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    control_sock = ctl_control_fd(control);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* The first batch says when it began. The file is made only now: the daemon did not refuse. */
static int open_file(struct recording *r, const json_t *begin)
{
    json_int_t at = json_integer_value(json_object_get(begin, "at_ns"));
    json_int_t real = json_integer_value(json_object_get(begin, "realtime_ns"));
    json_int_t pid = json_integer_value(json_object_get(begin, "pid"));

    r->began_ns = (uint64_t)at;
    r->file = trace_file_open(r->options->output, (uint64_t)at, (uint64_t)real, (int)pid);
    if (!r->file) {
        return ctl_fail("%s: %s", r->options->output, strerror(errno));
    }
    r->reader = trace_reader_new(r->file);
    if (!r->reader) {
        return ctl_fail("out of memory");
    }
    return CTL_DONE;
}

static int cannot_keep(const struct recording *r, int error)
{
    return ctl_fail("the temporary file beside %s: %s", r->options->output, strerror(error));
}

static int take_batch(struct recording *r, const json_t *batch)
{
    int rc = r->file ? CTL_DONE : open_file(r, json_object_get(batch, "begin")), error;

    if (rc) {
        return rc;
    }
    r->lost = json_incref(json_object_get(batch, "lost"));
    r->end = json_incref(json_object_get(batch, "end"));
    error = trace_spool_add(r->spool, batch);
    return error ? cannot_keep(r, error) : CTL_DONE;
}

/* Takes the reply that is there, or tells that it did not come in time, and what came with it. */
static int take_replies(struct recording *r, struct ctl_control *control, bool *ret_continues)
{
    json_t *reply;
    int rc;

    do {
        rc = ctl_control_receive(control, &reply, ret_continues);
        if (rc == CTL_DONE) {
            rc = take_batch(r, json_object_get(reply, "batch"));
            json_decref(reply);
        }
    } while (rc == CTL_DONE && *ret_continues && ctl_control_more(control));
    return rc;
}

/* Waits for replies and records, and keeps both. @sock: gets the records. Return: an exit code. */
static int record(struct recording *r, const struct ctl *ctl, struct ctl_control *control, int sock)
{
    bool continues = true, end = false;
    int rc = CTL_DONE, error;

    while (rc == CTL_DONE && continues) {
        struct pollfd fds[] = {{.fd = ctl_control_fd(control), .events = POLLIN},
                               {.fd = end ? -1 : sock, .events = POLLIN}};
        int n = poll(fds, base_array_count(fds), ctl->timeout_ms > 0 ? ctl->timeout_ms : -1);

        error = n > 0 && fds[1].revents ? trace_spool_receive(r->spool, sock, &end) : 0;
        rc = error ? cannot_keep(r, error) : CTL_DONE;
        if (rc == CTL_DONE && (n == 0 || (n > 0 && fds[0].revents))) {
            rc = take_replies(r, control, &continues);
        }
    }
    /* the daemon had sent all of them before its last reply */
    error = trace_spool_receive(r->spool, sock, &end);
    return error ? cannot_keep(r, error) : rc;
}

/* Records come after the batches that describe their teams, so all batches come first. */
static int convert(struct recording *r)
{
    int error = trace_spool_rewind(r->spool);
    const uint32_t *records;
    const json_t *batch;
    uint32_t track;
    size_t words;

    while (!error && (batch = trace_spool_batch(r->spool)) != NULL) {
        trace_reader_batch(r->reader, batch);
    }
    while (!error && (words = trace_spool_records(r->spool, &track, &records)) > 0) {
        trace_reader_records(r->reader, track, records, words);
    }
    return error;
}

static uint64_t lost(const struct recording *r, const char *what)
{
    return (uint64_t)ctl_real(r->lost, what);
}

static json_t *summary(const struct recording *r, uint64_t bytes)
{
    const struct trace_counts *n = &r->reader->counts;
    double until_ns = ctl_real(r->end, "at_ns");
    json_t *s = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file",
                          json_text_path(r->options->output), "bytes", (json_int_t)bytes, "teams",
                          (json_int_t)n->teams, "frames", (json_int_t)n->frames, "streams",
                          (json_int_t)n->streams, "answers", (json_int_t)n->answers, "instants",
                          (json_int_t)n->instants, "values", (json_int_t)n->values,
                          "not_understood", (json_int_t)n->bad);

    json_object_set_new(s, "seconds",
                        r->end ? json_real((until_ns - (double)r->began_ns) / 1e9) : json_null());
    json_object_set_new(s, "ended", r->end ? json_string(ctl_text(r->end, "why")) : json_null());
    json_object_set(s, "lost", r->lost ? r->lost : json_null());
    return s;
}

static void print_summary(const struct recording *r, uint64_t bytes)
{
    const struct trace_counts *n = &r->reader->counts;

    shown_printf("%s: %.1f MB, %llu frame%s on %llu team%s, %llu answer%s on %llu stream%s, "
                 "%llu event%s\n",
                 r->options->output, (double)bytes / 1e6, (unsigned long long)n->frames,
                 base_plural(n->frames), (unsigned long long)n->teams, base_plural(n->teams),
                 (unsigned long long)n->answers, base_plural(n->answers),
                 (unsigned long long)n->streams, base_plural(n->streams),
                 (unsigned long long)n->instants, base_plural(n->instants));
    if (lost(r, "records") + lost(r, "events") > 0) {
        shown_printf(
            "%llu record%s and %llu event%s found no room and are missing; --ring-kib makes the "
            "rings larger\n",
            (unsigned long long)lost(r, "records"), base_plural(lost(r, "records")),
            (unsigned long long)lost(r, "events"), base_plural(lost(r, "events")));
    }
    if (lost(r, "teams") > 0) {
        shown_printf(
            "not traced: %llu team%s; all rings together have 64 MiB; a smaller --ring-kib "
            "leaves room for more\n",
            (unsigned long long)lost(r, "teams"), base_plural(lost(r, "teams")));
    }
    if (n->bad > 0) {
        shown_printf("this pipectl cannot read %llu record%s; is it older than the daemon?\n",
                     (unsigned long long)n->bad, base_plural(n->bad));
    }
    puts("open it at https://ui.perfetto.dev, which keeps it on your computer");
}

/* Completes the file with what came. @rc: of the call. Return: an exit code. */
static int finish(const struct ctl *ctl, struct recording *r, int rc)
{
    uint64_t bytes = 0;
    int error;

    if (!r->file) {
        return rc;
    }
    error = r->reader ? convert(r) : 0;
    error = base_max(trace_file_close(r->file, &bytes), error);
    if (error) {
        return ctl_fail("%s: %s", r->options->output, strerror(error));
    }
    if (!r->reader) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_new(summary(r, bytes));
    } else {
        print_summary(r, bytes);
    }
    if (rc != CTL_DONE) {
        ctl_say("the trace ended early; %s has what came until then", r->options->output);
    }
    return rc;
}

/* Calls, and records until the last reply. Return: an exit code. */
static int call(struct recording *r, const struct ctl *ctl, struct ctl_control *control)
{
    json_auto_t *parameters = json_pack("{s:f}", "seconds", r->options->seconds);
    int pair[2], rc;

    if (r->options->ring_kib > 0) {
        json_object_set_new(parameters, "ring_kib", json_integer((json_int_t)r->options->ring_kib));
    }
    r->spool = trace_spool_new(r->options->output);
    if (!r->spool || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return cannot_keep(r, errno);
    }
    listen_to_signals(control);
    rc = ctl_control_send(control, "io.piped.Trace", parameters, true, &pair[1], 1);
    base_close_fd(&pair[1]);
    rc = rc ? rc : record(r, ctl, control, pair[0]);
    base_close_fd(&pair[0]);
    return rc;
}

int ctl_trace(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_control *control = NULL;
    struct ctl_options o = {.seconds = 10};
    struct recording r = {.options = &o};
    int rc = take_args(argc, argv, &o);

    rc = rc ? rc : ctl_control_open(ctl, &control);
    if (rc) {
        return rc;
    }
    rc = finish(ctl, &r, call(&r, ctl, control));
    trace_reader_free(r.reader);
    trace_spool_free(r.spool);
    json_decref(r.lost);
    json_decref(r.end);
    ctl_control_free(control);
    return rc;
}
