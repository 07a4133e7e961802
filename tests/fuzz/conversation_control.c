/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/conversation_control.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/fuzz/replay.h"

#define WAITING_MAX 64u
#define REPLY_MAX (1u << 20)

/* What a call is, besides a question. */
enum kind { ASKS, SEARCHES, LOADS, UNLOADS, RELOADS, LISTENS, ONE_WAY, NONSENSE, LEAVES };

struct method {
    enum kind kind;
    const char *name, *parameters; /* %1$s: a model, %2$s: a file or plan, %3$u: a small number */
};

static const struct method methods[CONTROL_CALLS] = {
    {ASKS, "SetPlan", "\"model\": \"%1$s\", \"plan\": \"%2$s\""},
    {LOADS, "Load", "\"name\": \"%1$s\", \"path\": \"%2$s\""},
    {UNLOADS, "Unload", "\"name\": \"%1$s\""},
    {RELOADS, "Reload", ""},
    {ASKS, "AutoPlan", "\"model\": \"%1$s\""},
    {SEARCHES, "Retune",
     "\"model\": \"%1$s\", \"algorithm\": \"random\", \"trials\": %3$u, \"seed\": 1"},
    {ASKS, "Retune",
     "\"model\": \"%1$s\", \"algorithm\": \"exact\", \"trials\": 1, \"wait\": false"},
    {ASKS, "CancelRetune", "\"model\": \"%1$s\""},
    {SEARCHES, "Optimise", "\"model\": \"%1$s\", \"ms\": %3$u"},
    {ASKS, "Status", ""},
    {ASKS, "Status", "\"model\": \"%1$s\""},
    {ASKS, "Models", ""},
    {ASKS, "GetPlan", "\"model\": \"%1$s\""},
    {ASKS, "GetMapping", "\"model\": \"%1$s\""},
    {ASKS, "Costs", "\"model\": \"%1$s\""},
    {ASKS, "PlanFront", "\"model\": \"%1$s\", \"max\": %3$u"},
    {ASKS, "PlanExplain", "\"model\": \"%1$s\""},
    {ASKS, "History", "\"limit\": %3$u"},
    {ASKS, "Units", "\"model\": \"%1$s\""},
    {ASKS, "Metrics", ""},
    {ASKS, "Config", ""},
    {LISTENS, "Subscribe", ""},
    {ONE_WAY, "AutoPlan", "\"model\": \"%1$s\""},
    {ASKS, "SetMapping", "\"model\": \"%1$s\", \"mapping\": {\"here_cpu01\": []}"},
    {ASKS, "LinkReport", "\"report\": {}"},
    {ASKS, "Nothing", ""},
    {NONSENSE, "Status", "\"model\": %3$u"},
    {LEAVES, "", ""},
};

static int fd = -1;
static enum kind waiting[WAITING_MAX]; /* calls without a reply, the oldest first */
static size_t waiting_count, used;
static bool changed, other_models;
/* files of model "a" until the last reload has ended, and then */
static unsigned before_reload, after_reload;
static char *rx;

void control_begin(void)
{
    static const unsigned at_rest[TALK_MODELS] = {[TALK_A] = 1u << RIG_A, [TALK_B] = 1u << RIG_B};

    if (!rx) {
        rx = malloc(REPLY_MAX);
        MUST(rx);
    }
    memcpy(talk_models.versions, at_rest, sizeof(at_rest));
    talk_models.unsteady = changed = other_models = false;
}

static void leave(void)
{
    base_close_fd(&fd);
    waiting_count = used = 0;
}

bool control_end(void)
{
    leave();
    return changed;
}

static void write_call(const struct method *m, const char *model, const char *text, unsigned n)
{
    char parameters[512] = "", call[1024];
    int bytes;

    if (*m->parameters) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(parameters, sizeof(parameters), m->parameters, model, text, n);
#pragma GCC diagnostic pop
    }
    bytes = snprintf(call, sizeof(call), "{\"method\": \"io.piped.%s\", \"parameters\": {%s}%s%s}",
                     m->name, parameters, m->kind == LISTENS ? ", \"more\": true" : "",
                     m->kind == ONE_WAY ? ", \"oneway\": true" : "");
    /* small ones fit; a daemon that is busy with one call leaves the next in the socket */
    if (send(fd, call, (size_t)bytes + 1, MSG_NOSIGNAL) == bytes + 1 && m->kind != ONE_WAY) {
        waiting[waiting_count++] = m->kind;
    }
}

/* Return: false: another one is in progress; which file that one reads must be known. */
static bool begin_reload(uint8_t how, void (*tell)(enum talk_model m, unsigned versions))
{
    enum rig_file a = how & 1 ? RIG_A2 : RIG_A;

    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i] == RELOADS) {
            return false;
        }
    }
    before_reload = talk_models.versions[TALK_A];
    rig_configure(a);
    changed = true;
    after_reload = 1u << a;
    talk_models.unsteady |= other_models;
    talk_models.versions[TALK_A] |= 1u << a;
    tell(TALK_A, 1u << a);
    return true;
}

static void begin_load(enum talk_model m, enum rig_file f,
                       void (*tell)(enum talk_model m, unsigned versions))
{
    changed = other_models = talk_models.unsteady = true;
    talk_models.versions[m] |= 1u << f;
    tell(m, 1u << f);
}

void control_act(const uint8_t a[4], void (*tell)(enum talk_model m, unsigned versions))
{
    static const char *const names[TALK_MODELS] = {"a", "b", "c", "", "none"};
    static const char *const plans[] = {
        "0-3@bigx1",
        "0-3@bigx2",
        "0-1@bigx1|2-3@littlex1",
        "0-3@littlex1*2",
        "0-0@bigx2|1-3@bigx1",
        "0-0@bigx1|1-1@bigx1|2-2@littlex1|3-3@littlex1",
        "0-3@bigx1+littlex1",
        "0-9@nothing",
    };
    const struct method *m = &methods[a[0] % CONTROL_CALLS];
    enum talk_model model = a[1] % TALK_MODELS;
    enum rig_file f = a[2] % RIG_FILES;
    const char *text = m->kind == LOADS ? rig_file(f) : plans[a[2] % base_array_count(plans)];

    if (m->kind == LEAVES || waiting_count == WAITING_MAX) {
        leave();
        return;
    }
    if (fd < 0) {
        fd = rig_connect(true, a[3] < 0xf0 ? geteuid() : 1000);
    }
    if (m->kind == RELOADS && !begin_reload(a[1], tell)) {
        return;
    }
    if (m->kind == LOADS) {
        begin_load(model, f, tell);
    } else if (m->kind == UNLOADS) {
        begin_load(model, RIG_A, tell);
    }
    write_call(m, names[model], text, a[2] % 4);
}

/* From here on only one file serves the model, unless it was loaded or unloaded besides. */
static void reload_ended(bool good)
{
    if (!other_models) {
        talk_models.versions[TALK_A] = good ? after_reload : before_reload;
    }
}

static void reply(const char *text, size_t bytes)
{
    json_t *j = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    bool goes_on = json_is_true(json_object_get(j, "continues"));

    MUST(json_is_object(j) && waiting_count > 0);
    MUST(json_object_get(j, "error") || json_is_object(json_object_get(j, "parameters")));
    MUST(!goes_on || waiting[0] == LISTENS);
    if (waiting[0] == RELOADS) {
        reload_ended(!json_object_get(j, "error"));
    }
    json_decref(j);
    if (!goes_on) {
        waiting_count--;
        memmove(waiting, waiting + 1, waiting_count * sizeof(*waiting));
    }
}

bool control_read(void)
{
    bool any = false;

    while (fd >= 0) {
        ssize_t n = recv(fd, rx + used, REPLY_MAX - used, 0);
        char *end;

        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n <= 0) {
            MUST(!"closed"); /* it ends no connection of who is honest */
        }
        used += (size_t)n;
        any = true;
        while ((end = memchr(rx, '\0', used)) != NULL) {
            size_t bytes = (size_t)(end - rx);

            reply(rx, bytes);
            used -= bytes + 1;
            memmove(rx, end + 1, used);
        }
        MUST(used < REPLY_MAX);
    }
    return any;
}

bool control_settled(void)
{
    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i] == SEARCHES || waiting[i] == LISTENS) {
            return true; /* later calls wait behind it */
        }
    }
    return waiting_count == 0;
}
