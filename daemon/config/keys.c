/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/keys.h"

#include "base/base.h"
#include "tuner/search/search_table.h"

/* @when_: NOW: a reload applies the key; START: it takes effect at the next start. ADVANCED: with
 * either. */
enum { NOW = 0, START = 1, ADVANCED = 2 };
#define INT(id_, key_, unit_, min_, max_, value_, when_, help_)                                    \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_INT, .unit = unit_, .min = min_, .max = max_,   \
        .value = value_, .restart = ((when_)&START) != 0, .advanced = ((when_)&ADVANCED) != 0,     \
        .help = help_                                                                              \
    }
#define BOOL(id_, key_, value_, when_, help_)                                                      \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_BOOL, .unit = "", .value = value_,              \
        .restart = ((when_)&START) != 0, .advanced = ((when_)&ADVANCED) != 0, .help = help_        \
    }
#define STRING(id_, key_, max_, text_, when_, help_)                                               \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_STRING, .unit = "", .max = max_, .text = text_, \
        .restart = ((when_)&START) != 0, .advanced = ((when_)&ADVANCED) != 0, .help = help_        \
    }

static const struct dmn_config_row rows[] = {
    {.id = DMN_KEY_LOG_LEVEL,
     .key = "log_level",
     .type = DMN_CONFIG_ENUM,
     .unit = "",
     .value = 2,
     .choices = "error|warning|notice|info|debug",
     .help = "Lowest severity to log; -v on the command line means debug."},
    STRING(DMN_KEY_ADMIN_GROUP, "admin_group", 63, "", NOW,
           "Group whose members may change models, plans and configuration over the control "
           "socket, as root and the daemon's own user may. The groups that a client's process has "
           "count, so a new member logs in again first. Empty: nobody else."),
    STRING(DMN_KEY_SOCKET_MODE, "socket_mode", 4, "0660", START,
           "Permissions, in octal, of the sockets that the daemon creates itself; with socket "
           "activation the socket unit sets them."),
    STRING(DMN_KEY_SOCKET_GROUP, "socket_group", 63, "", START,
           "Group that owns the sockets that the daemon creates itself; it must exist, and the "
           "daemon's user must be a member, or root. Empty: the daemon's own."),
    STRING(DMN_KEY_DEFAULT_MODEL, "default_model", 63, "", NOW,
           "Model for clients and commands that name none. Empty, or not loaded: the first one; of "
           "the model that comes with piped only if there is no other."),
    BOOL(DMN_KEY_PIN, "pin", 1, START, "Pin every thread of a team to a core of its own."),
    INT(DMN_KEY_FRAMES_IN_FLIGHT, "frames_in_flight", "frames", 0, 1024, 0, START,
        "Maximum number of frames of one model in its pipeline; each takes one arena. 0: enough "
        "for any plan on these cores."),
    INT(DMN_KEY_DRAIN_MS, "drain_ms", "ms", 0, 600000, 10000, NOW,
        "How long a stop waits until frames in flight are answered."),
    INT(DMN_KEY_STALLED_MS, "stalled_ms", "ms", 100, 3600000, 20000, NOW,
        "A stage that holds a frame this long without progress counts as stuck: the status is "
        "degraded, and the service watchdog is no longer fed."),
    INT(DMN_KEY_HISTORY_EVENTS, "history_events", "events", 1, 4096, 256, START,
        "Number of plan changes that the history keeps."),
    INT(DMN_KEY_SPIN_US, "spin_us", "us", 0, 100000, 20, START | ADVANCED,
        "How long a team spins for its next frame before it sleeps. 0: sleep at once."),
    {.id = DMN_KEY_PLANNER_OBJECTIVE,
     .key = "planner.objective",
     .type = DMN_CONFIG_ENUM,
     .unit = "",
     .value = 0,
     .choices = "throughput|latency|power",
     .help = "What the planner optimises: most frames a second (then lowest latency among nearly "
             "equal plans), lowest latency of the worst frame, or least energy a frame. power "
             "needs planner.fps."},
    INT(DMN_KEY_PLANNER_FPS, "planner.fps", "frames/s", 0, 1000000, 0, NOW,
        "Minimum frame rate of a plan. 0: no bound."),
    INT(DMN_KEY_PLANNER_LATENCY_MS, "planner.latency_ms", "ms", 0, 600000, 0, NOW,
        "Maximum latency of a plan's worst frame. 0: no bound."),
    INT(DMN_KEY_PLANNER_STAGES_MAX, "planner.stages_max", "stages", 0, 64, 0, NOW,
        "Maximum number of stages of a plan. 0: one for each core."),
    INT(DMN_KEY_PLANNER_TUNE_S, "planner.tune_s", "s", 1, 86400, 300, NOW,
        "Maximum time of a whole retune; then the best plan so far serves."),
    STRING(
        DMN_KEY_PLANNER_ALGORITHM, "planner.algorithm", 31, "exact", NOW | ADVANCED,
        "Search that finds plans when the machine changes, and for a retune that names "
        "none: " TUN_SEARCH_NAMES
        " (\"pipesim list\" describes each). exact solves the costs and changes the "
        "plan if that gains enough; any other search is run on live frames for every change that "
        "lasts, within adapt.cooldown_s and adapt.per_hour."),
    {.id = DMN_KEY_PLANNER_START,
     .key = "planner.start",
     .type = DMN_CONFIG_ENUM,
     .unit = "",
     .advanced = true,
     .value = 0,
     .choices = "exact|algorithm",
     .help = "Who finds the first plan of a model that has none saved or configured: exact, or "
             "planner.algorithm, whose seed serves until frames come. Then its search is run on "
             "them."},
    INT(DMN_KEY_PLANNER_ALPHA, "planner.alpha", "trials", 0, 1000, 0, NOW | ADVANCED,
        "A search gives up after this many trials without a gain. 0: the algorithm's own default."),
    INT(DMN_KEY_BATCH_WAIT_US, "planner.batch_wait_us", "us", 0, 1000000, 0, START | ADVANCED,
        "How long a team that may take several frames at once (/BATCH in a plan) waits for more of "
        "them, from when it was given the first. Never so long that a frame misses its deadline. "
        "0: it takes those that are there."),
    INT(DMN_KEY_PLANNER_FRAMES, "planner.frames", "frames", 1, 10000, 24, NOW | ADVANCED,
        "Frames in one measurement of a retune."),
    INT(DMN_KEY_PLANNER_MS, "planner.measure_ms", "ms", 1, 600000, 2000, NOW | ADVANCED,
        "Maximum time of one measurement of a retune."),
    STRING(DMN_KEY_GPIO_CHIP, "gpio.chip", 63, "", START,
           "GPIO chip of the lines below: its label (stable when numbers change), its name "
           "(gpiochip0) or its path. Empty: no GPIO. The daemon looks for a missing chip every "
           "second."),
    INT(DMN_KEY_GPIO_BUTTON, "gpio.button", "line", -1, 65535, -1, START,
        "Line number of a button that retunes every model. -1: none."),
    BOOL(DMN_KEY_GPIO_BUTTON_LOW, "gpio.button_active_low", 0, START,
         "The button pulls its line low."),
    INT(DMN_KEY_GPIO_POWER, "gpio.power", "line", -1, 65535, -1, START,
        "Line number of a signal that is active while power is short or cores are throttled. -1: "
        "none."),
    BOOL(DMN_KEY_GPIO_POWER_LOW, "gpio.power_active_low", 0, START,
         "The power line is active when low."),
    INT(DMN_KEY_GPIO_LED, "gpio.led", "line", -1, 65535, -1, START,
        "Line number of a status LED: steady while serving, blinking slowly while tuning and fast "
        "while degraded, one flash a second while draining, off otherwise. -1: none."),
    BOOL(DMN_KEY_GPIO_LED_LOW, "gpio.led_active_low", 0, START, "The LED is lit when low."),
    INT(DMN_KEY_GPIO_DEBOUNCE_MS, "gpio.debounce_ms", "ms", 0, 10000, 30, START,
        "How long an input must hold a level before it counts."),
    INT(DMN_KEY_SENSORS_INTERVAL_MS, "sensors.interval_ms", "ms", 0, 60000, 200, NOW,
        "How often frequencies, temperatures, pressure, quota and energy are read. 0: never; "
        "status then shows null, and only service times reveal changes."),
    BOOL(DMN_KEY_ADAPT_ENABLED, "adapt.enabled", 1, NOW,
         "Change the plan when frequencies, heat, interference or missing cores make another plan "
         "better. A plan that a user set stays while its cores are present."),
    INT(DMN_KEY_ADAPT_GAIN, "adapt.gain_percent", "%", 0, 1000, 3, NOW,
        "Change the plan only if the new one is predicted to be better by this much."),
    INT(DMN_KEY_ADAPT_URGENT, "adapt.urgent_percent", "%", 0, 1000, 25, NOW,
        "A plan that is predicted to be better by this much does not wait for adapt.cooldown_s, "
        "unless that has doubled twice. 0: every plan waits."),
    INT(DMN_KEY_ADAPT_COOLDOWN_S, "adapt.cooldown_s", "s", 0, 86400, 5, NOW,
        "Minimum time between two changes; it doubles when plans alternate or are rolled back. "
        "Lost cores and the button do not wait."),
    INT(DMN_KEY_ADAPT_HOURLY, "adapt.per_hour", "changes", 0, 100000, 30, NOW,
        "Maximum number of plan changes an hour. Lost cores and the button do not count."),
    INT(DMN_KEY_ADAPT_PROBE_S, "adapt.probe_s", "s", 0, 86400, 5, NOW,
        "Try an EP again this long after interference made the plan abandon it. The time doubles "
        "with each try; an EP that looks free is tried at once. 0: never."),
    INT(DMN_KEY_ADAPT_WINDOW_MS, "adapt.window_ms", "ms", 20, 60000, 100, NOW | ADVANCED,
        "How often service times are compared with what is expected."),
    INT(DMN_KEY_ADAPT_NOTICE, "adapt.notice_millisigma", "thousandths of the spread", 3100, 11500,
        6200, NOW | ADVANCED,
        "Detector sum at which a change is noticed and learning of costs pauses."),
    INT(DMN_KEY_ADAPT_FIRM, "adapt.sustain_millisigma", "thousandths of the spread", 11500, 1000000,
        14000, NOW | ADVANCED,
        "Detector sum at which a change counts as sustained and triggers a decision."),
    INT(DMN_KEY_ADAPT_NOISE, "adapt.noise_permille", "permille", 1, 1000, 20, NOW | ADVANCED,
        "Minimum spread of service times to assume, however steady they are."),
    INT(DMN_KEY_ADAPT_SETTLE, "adapt.settle_windows", "windows", 1, 100, 8, NOW | ADVANCED,
        "Windows in which a new plan is measured before it may be rolled back."),
    INT(DMN_KEY_ADAPT_VERIFY, "adapt.verify_percent", "%", 1, 1000, 10, NOW | ADVANCED,
        "Roll back a new plan that is slower than predicted by this much and no better than the "
        "previous plan."),
    INT(DMN_KEY_KERNELS_MEASURE_MS, "kernels.measure_ms", "ms", 0, 600000, 4000, NOW,
        "How long primitives are measured on each EP when a model is first loaded on this machine; "
        "the result is kept. 0: use the default order."),
    STRING(DMN_KEY_BOARDS_FRAMES_SOCKET, "boards.frames_socket", 107, "/run/piped-link/frames.sock",
           START, "Frames socket of piped-link, for models that are served over several boards."),
    INT(DMN_KEY_BOARDS_MEMORY_MIB, "boards.memory_mib", "MiB", 0, 1048576, 0, NOW,
        "Memory that a model may take on this board when other boards can serve it, too. A larger "
        "one "
        "is not packed, and served over boards only. 0: no limit; plans count with what is free."),
    INT(DMN_KEY_LIMIT_MODELS, "limits.models", "models", 1, 64, 16, NOW,
        "Maximum number of loaded models."),
    INT(DMN_KEY_LIMIT_WEIGHT_MIB, "limits.model_weight_mib", "MiB", 1, 1048576, 4096, NOW,
        "Refuse models with more weights."),
    INT(DMN_KEY_LIMIT_ARENA_MIB, "limits.model_arena_mib", "MiB", 1, 1048576, 2048, NOW,
        "Refuse models whose activations need more for one frame."),
    INT(DMN_KEY_LIMIT_CONNECTIONS, "limits.connections", "connections", 1, 4096, 64, NOW,
        "Maximum number of connections to the frames socket."),
    INT(DMN_KEY_LIMIT_CONNECTIONS_UID, "limits.connections_per_user", "connections", 1, 4096, 48,
        NOW,
        "Maximum number of connections of one user to the frames socket. Root, the daemon's own "
        "user and piped-link are not limited."),
    INT(DMN_KEY_LIMIT_CONTROL, "limits.control_connections", "connections", 1, 1024, 32, NOW,
        "Maximum number of connections to the control socket. If all are taken, the idlest one of "
        "the user with the most makes room."),
    INT(DMN_KEY_LIMIT_CONTROL_UID, "limits.control_connections_per_user", "connections", 1, 1024,
        16, NOW,
        "Maximum number of connections of one user to the control socket; beyond it, the user's "
        "idlest one makes room. Root, the daemon's own user and piped-link are not limited."),
    INT(DMN_KEY_LIMIT_KEPT, "limits.kept_connections", "connections", 1, 256, 8, NOW,
        "How many more connections root, the daemon's own user and piped-link may have to each "
        "socket when all are taken, so that other users cannot lock them out."),
    INT(DMN_KEY_LIMIT_HANDSHAKE_S, "limits.handshake_s", "s", 1, 3600, 10, NOW,
        "Disconnect a client that has sent no HELLO to the frames socket, or no call to the "
        "control socket, this long after it connected."),
    INT(DMN_KEY_LIMIT_STREAMS, "limits.streams", "streams", 1, 64, 16, NOW,
        "Maximum number of open streams of one connection."),
    INT(DMN_KEY_LIMIT_CREDITS, "limits.credits", "frames", 1, 256, 64, NOW,
        "Maximum number of unanswered frames of one stream."),
    INT(DMN_KEY_LIMIT_POOL_MIB, "limits.pool_mib_per_user", "MiB", 1, 1048576, 1024, NOW,
        "Maximum client memory of one user."),
    INT(DMN_KEY_LIMIT_INLINE_MIB, "limits.inline_mib", "MiB", 1, 65536, 256, NOW,
        "Maximum memory for the inline and f16 frames of one connection."),
    INT(DMN_KEY_LIMIT_INLINE_TOTAL_MIB, "limits.inline_total_mib", "MiB", 1, 1048576, 512, NOW,
        "Maximum memory for the inline, f16 and shrunk frames of all connections; one user gets at "
        "most as much as stays free for others."),
    INT(DMN_KEY_LIMIT_BACKLOG_KIB, "limits.backlog_kib", "KiB", 64, 1048576, 1024, NOW,
        "Stop reading from a connection while it has more unread answers than this."),
    INT(DMN_KEY_LIMIT_SLOW_S, "limits.slow_client_s", "s", 1, 3600, 30, NOW,
        "Disconnect a client that reads nothing for this long while its backlog is full."),
    INT(DMN_KEY_LIMIT_IMAGE_MPIXELS, "limits.image_mpixels", "megapixels", 1, 1024, 64, NOW,
        "Refuse larger images."),
    INT(DMN_KEY_LIMIT_SLICE_MPIXELS, "limits.slice_mpixels", "megapixels", 1, 1024, 9, NOW,
        "Shrink larger images beside the pipeline, in slices, so that no frame waits for them; "
        "from a third on while another user has a stream of the model."),
    STRING(DMN_KEY_LIMIT_USER_WEIGHTS, "limits.user_weights", 250, "", NOW,
           "Shares of computing time beside other users: \"UID=WEIGHT,...\", weights 1 to 1000; "
           "other users have 1. New streams use it."),
};

static const struct dmn_config_item_row items[] = {
    {"models", "name", "string", "",
     "Name of the model: letters, digits, '.', '_' and '-', then \"#FIRST-LAST\" to serve only "
     "these units of it, at most 63.",
     true},
    {"models", "path", "string", "",
     "ONNX file or network description; a relative path is relative to this file's folder.", true},
    {"models", "shapes", "shapes", "",
     "Sizes for dimensions that the file leaves open, before those of the sidecar: an object such "
     "as {\"images\": [1, 3, 480, 640], \"height\": 480}, or text such as "
     "\"images=1x3x480x640,height=480\", by names of inputs or of dimensions.",
     false},
    {"models", "plan", "string", "",
     "Serve by this plan (FIRST-LAST@TEAMS|...). Empty: the daemon plans.", false},
    {"models", "latest", "bool", "false",
     "Drop older frames for newer ones in streams that do not ask for another policy.", false},
    {"models", "kernels", "string", "",
     "Comma-separated parts of primitive names to prefer, for example \"__ref\". Empty: the "
     "fastest.",
     false},
    {"models", "calibration", "string", "",
     "Quantise the model by this file of ranges, written by \"pipectl quantize --write\"; a "
     "relative path is relative to this file's folder. Empty: use what pipectl quantize kept, "
     "if anything.",
     false},
    {"models", "boards", "string", "off",
     "Serve the model over several boards: \"auto\", or a route FIRST-LAST@BOARDS|... such as "
     "\"0-16@here|17-44@b2+b3\", with the names of pipectl board list and \"here\" for this board. "
     "\"off\": this board alone.",
     false},
    {"eps", "name", "string", "",
     "Name of the execution place: a letter, then letters, digits and '_'.", true},
    {"eps", "cpus", "cores", "",
     "Its cores by kernel number, which the machine must have, online or not: text such as "
     "\"0-3,6\", or a list such as [0, 1].",
     true},
    {"eps", "speed", "number", "1", "Relative speed, above 0 and at most 1, until it is measured.",
     false},
    {"eps", "watts", "number", "0",
     "Power of one busy core above idle, for the objective power. 0: estimated from the speed.",
     false},
};

const struct dmn_config_row *dmn_config_table(size_t *ret_count)
{
    *ret_count = base_array_count(rows);
    return rows;
}

const struct dmn_config_item_row *dmn_config_item_table(size_t *ret_count)
{
    *ret_count = base_array_count(items);
    return items;
}

int dmn_config_choice(const struct dmn_config_row *row, const char *name)
{
    size_t length = strlen(name);
    const char *at = row->choices;

    for (int i = 0; at; i++) {
        const char *end = strchrnul(at, '|');

        if ((size_t)(end - at) == length && memcmp(at, name, length) == 0) {
            return i;
        }
        at = *end ? end + 1 : NULL;
    }
    return -ENOENT;
}

void dmn_config_choice_name(const struct dmn_config_row *row, size_t index, char *ret, size_t bytes)
{
    const char *at = row->choices;

    for (size_t i = 0; at; i++) {
        const char *end = strchrnul(at, '|');

        if (i == index) {
            snprintf(ret, bytes, "%.*s", (int)(end - at), at);
            return;
        }
        at = *end ? end + 1 : NULL;
    }
    ret[0] = '\0';
}

_Static_assert(base_array_count(rows) == DMN_KEY_COUNT, "one row for each key");
