/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/keys.h"

#include <stdio.h>
#include <string.h>

#include "base.h"

/* @when_: NOW if a reload applies the key, START if it takes a restart */
#define NOW false
#define START true
#define INT(id_, key_, unit_, min_, max_, value_, when_, help_)                                    \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_INT, .unit = unit_, .min = min_, .max = max_,   \
        .value = value_, .restart = when_, .help = help_                                           \
    }
#define BOOL(id_, key_, value_, when_, help_)                                                      \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_BOOL, .unit = "", .value = value_,              \
        .restart = when_, .help = help_                                                            \
    }
#define STRING(id_, key_, max_, text_, when_, help_)                                               \
    {                                                                                              \
        .id = id_, .key = key_, .type = DMN_CONFIG_STRING, .unit = "", .max = max_, .text = text_, \
        .restart = when_, .help = help_                                                            \
    }

static const struct dmn_config_row rows[] = {
    {.id = DMN_KEY_LOG_LEVEL,
     .key = "log_level",
     .type = DMN_CONFIG_ENUM,
     .unit = "",
     .value = 2,
     .choices = "error|warning|notice|info|debug",
     .help = "Least important messages that are logged; -v on the command line means debug."},
    STRING(DMN_KEY_ADMIN_GROUP, "admin_group", 63, "", NOW,
           "Group whose members may change models, plans and configuration over the control "
           "socket, beside root and the daemon's own user. Empty: nobody else."),
    STRING(DMN_KEY_SOCKET_MODE, "socket_mode", 4, "0660", START,
           "Permissions, in octal, of the sockets that the daemon makes itself; with socket "
           "activation the socket unit decides."),
    STRING(DMN_KEY_SOCKET_GROUP, "socket_group", 63, "", START,
           "Group that owns the sockets that the daemon makes itself. Empty: the daemon's own."),
    STRING(DMN_KEY_DEFAULT_MODEL, "default_model", 63, "", NOW,
           "Model of clients and commands that name none. Empty: the first one."),
    INT(DMN_KEY_SPIN_US, "spin_us", "us", 0, 100000, 20, START,
        "How long a team spins for its next frame before it sleeps. 0: sleep at once."),
    BOOL(DMN_KEY_PIN, "pin", 1, START, "Pin every thread of a team to a core of its own."),
    INT(DMN_KEY_FRAMES_IN_FLIGHT, "frames_in_flight", "frames", 0, 1024, 0, START,
        "Most frames of one model that are in its pipeline; each takes one arena of memory. "
        "0: enough for any plan on these cores."),
    INT(DMN_KEY_DRAIN_MS, "drain_ms", "ms", 0, 600000, 10000, NOW,
        "How long a stop waits for the answers of what is in flight."),
    INT(DMN_KEY_STALLED_MS, "stalled_ms", "ms", 100, 3600000, 20000, NOW,
        "A stage that holds a frame this long without progress counts as stuck: status says "
        "degraded and the service watchdog is no longer fed."),
    INT(DMN_KEY_HISTORY_EVENTS, "history_events", "events", 1, 4096, 256, START,
        "Changes of plan that are remembered for the history."),
    STRING(DMN_KEY_PLANNER_ALGORITHM, "planner.algorithm", 31, "exact", NOW,
           "Search of a retune that names none: exact, shisha, pipe-search, pipe-it, exhaustive, "
           "random, hill-climbing, annealing (\"pipesim list\" says what each is). Plans without a "
           "retune are always exact."),
    {.id = DMN_KEY_PLANNER_OBJECTIVE,
     .key = "planner.objective",
     .type = DMN_CONFIG_ENUM,
     .unit = "",
     .value = 0,
     .choices = "throughput|latency|power",
     .help = "What plans are chosen for: the most frames a second (and the lower latency among "
             "nearly equal ones), the lowest latency of the worst frame, or the least energy a "
             "frame; power needs planner.fps."},
    INT(DMN_KEY_PLANNER_FPS, "planner.fps", "frames/s", 0, 1000000, 0, NOW,
        "Frames a second that plans are to keep. 0: no such bound."),
    INT(DMN_KEY_PLANNER_LATENCY_MS, "planner.latency_ms", "ms", 0, 600000, 0, NOW,
        "Latency of the worst frame that plans are to stay below. 0: no such bound."),
    INT(DMN_KEY_PLANNER_ALPHA, "planner.alpha", "trials", 0, 1000, 0, NOW,
        "Trials without gain after which a search stops. 0: what suits the algorithm."),
    INT(DMN_KEY_PLANNER_STAGES_MAX, "planner.stages_max", "stages", 0, 64, 0, NOW,
        "Most stages that the daemon plans. 0: one for each core."),
    INT(DMN_KEY_PLANNER_FRAMES, "planner.frames", "frames", 1, 10000, 24, NOW,
        "Frames that a measurement of a retune takes."),
    INT(DMN_KEY_PLANNER_MS, "planner.measure_ms", "ms", 1, 600000, 2000, NOW,
        "Longest time of one measurement of a retune."),
    INT(DMN_KEY_PLANNER_TUNE_S, "planner.tune_s", "s", 1, 86400, 300, NOW,
        "Longest time of a whole retune; the best plan seen serves then."),
    STRING(DMN_KEY_GPIO_CHIP, "gpio.chip", 63, "", START,
           "GPIO chip of the lines below: its label (which stays when numbers move), its name "
           "(gpiochip0) or its path. Empty: no GPIO. A chip that is not there is looked for every "
           "second."),
    INT(DMN_KEY_GPIO_BUTTON, "gpio.button", "line", -1, 65535, -1, START,
        "Number of the line of a button that retunes every model when it is pressed. -1: none."),
    BOOL(DMN_KEY_GPIO_BUTTON_LOW, "gpio.button_active_low", 0, START,
         "The button pulls its line low."),
    INT(DMN_KEY_GPIO_POWER, "gpio.power", "line", -1, 65535, -1, START,
        "Number of a line that is active while power is short or cores are throttled. -1: none."),
    BOOL(DMN_KEY_GPIO_POWER_LOW, "gpio.power_active_low", 0, START,
         "The power line is active when low."),
    INT(DMN_KEY_GPIO_LED, "gpio.led", "line", -1, 65535, -1, START,
        "Number of the line of a status LED: steady while serving, slow blinking while tuning, "
        "fast "
        "while degraded, a flash a second while draining, dark otherwise. -1: none."),
    BOOL(DMN_KEY_GPIO_LED_LOW, "gpio.led_active_low", 0, START, "The LED is lit when low."),
    INT(DMN_KEY_GPIO_DEBOUNCE_MS, "gpio.debounce_ms", "ms", 0, 10000, 30, START,
        "How long an input has to hold a level before it counts."),
    INT(DMN_KEY_SENSORS_INTERVAL_MS, "sensors.interval_ms", "ms", 0, 60000, 200, NOW,
        "How often frequencies, temperatures, pressure, quota and energy are read. 0: never; "
        "status then has null for them, and changes are told by service times alone."),
    BOOL(DMN_KEY_ADAPT_ENABLED, "adapt.enabled", 1, NOW,
         "Notice when frequencies, heat, other programs or missing cores make another plan better, "
         "and change to it. Plans that a user set are left alone while their cores are there."),
    INT(DMN_KEY_ADAPT_GAIN, "adapt.gain_percent", "%", 0, 1000, 3, NOW,
        "A plan changes only if the new one should be better by this much."),
    INT(DMN_KEY_ADAPT_URGENT, "adapt.urgent_percent", "%", 0, 1000, 25, NOW,
        "A plan that should be better by this much does not wait for adapt.cooldown_s, until that "
        "was doubled twice. 0: every plan waits."),
    INT(DMN_KEY_ADAPT_COOLDOWN_S, "adapt.cooldown_s", "s", 0, 86400, 5, NOW,
        "Shortest time between two changes; doubled when plans go to and fro or had to be taken "
        "back. Lost cores and the button do not wait."),
    INT(DMN_KEY_ADAPT_HOURLY, "adapt.per_hour", "changes", 0, 100000, 30, NOW,
        "Most changes of plan an hour. Lost cores and the button do not count."),
    INT(DMN_KEY_ADAPT_WINDOW_MS, "adapt.window_ms", "ms", 20, 60000, 100, NOW,
        "Service times are compared with what is expected once in so long."),
    INT(DMN_KEY_ADAPT_NOTICE, "adapt.notice_millisigma", "thousandths of the spread", 3100, 11500,
        6200, NOW,
        "A detector's sum at which a change is noticed: the plan's costs are no longer learned."),
    INT(DMN_KEY_ADAPT_FIRM, "adapt.sustain_millisigma", "thousandths of the spread", 11500, 1000000,
        14000, NOW, "A detector's sum at which a change counts as sustained and is decided on."),
    INT(DMN_KEY_ADAPT_NOISE, "adapt.noise_permille", "permille", 1, 1000, 20, NOW,
        "Least spread of service times that is assumed, however steady they are."),
    INT(DMN_KEY_ADAPT_SETTLE, "adapt.settle_windows", "windows", 1, 100, 8, NOW,
        "Windows in which a new plan is measured before it may be taken back."),
    INT(DMN_KEY_ADAPT_VERIFY, "adapt.verify_percent", "%", 1, 1000, 10, NOW,
        "A new plan that is slower than predicted by this much, and no better than the one before, "
        "is taken back."),
    INT(DMN_KEY_ADAPT_PROBE_S, "adapt.probe_s", "s", 0, 86400, 5, NOW,
        "A kind of core that was left because something else used it is tried again after so long, "
        "twice as late each time, and at once when what is seen says that it is free. 0: never."),
    INT(DMN_KEY_KERNELS_MEASURE_MS, "kernels.measure_ms", "ms", 0, 600000, 4000, NOW,
        "When a model is loaded for the first time on this machine, its primitives are measured "
        "for about so long on each kind of cores; what was found is kept. 0: the usual ones."),
    INT(DMN_KEY_LIMIT_MODELS, "limits.models", "models", 1, 64, 16, NOW,
        "Most models loaded at once."),
    INT(DMN_KEY_LIMIT_WEIGHT_MIB, "limits.model_weight_mib", "MiB", 1, 1048576, 4096, NOW,
        "Models with more weights are refused."),
    INT(DMN_KEY_LIMIT_ARENA_MIB, "limits.model_arena_mib", "MiB", 1, 1048576, 2048, NOW,
        "Models whose activations of one frame need more are refused."),
    INT(DMN_KEY_LIMIT_CONNECTIONS, "limits.connections", "connections", 1, 4096, 64, NOW,
        "Most connections to the frames socket."),
    INT(DMN_KEY_LIMIT_CONNECTIONS_UID, "limits.connections_per_user", "connections", 1, 4096, 48,
        NOW, "Most connections of one user to the frames socket."),
    INT(DMN_KEY_LIMIT_CONTROL, "limits.control_connections", "connections", 1, 1024, 32, NOW,
        "Most connections to the control socket."),
    INT(DMN_KEY_LIMIT_CONTROL_UID, "limits.control_connections_per_user", "connections", 1, 1024,
        16, NOW, "Most connections of one user but root to the control socket."),
    INT(DMN_KEY_LIMIT_STREAMS, "limits.streams", "streams", 1, 64, 16, NOW,
        "Most open streams of one connection."),
    INT(DMN_KEY_LIMIT_CREDITS, "limits.credits", "frames", 1, 256, 64, NOW,
        "Most unanswered frames of one stream."),
    INT(DMN_KEY_LIMIT_POOL_MIB, "limits.pool_mib_per_user", "MiB", 1, 1048576, 1024, NOW,
        "Most shared memory that one user's clients may have mapped here."),
    INT(DMN_KEY_LIMIT_INLINE_MIB, "limits.inline_mib", "MiB", 1, 65536, 256, NOW,
        "Most memory for the inline frames of one connection."),
    INT(DMN_KEY_LIMIT_BACKLOG_KIB, "limits.backlog_kib", "KiB", 64, 1048576, 1024, NOW,
        "Unread answers of one connection above which nothing more is read from it."),
    INT(DMN_KEY_LIMIT_SLOW_S, "limits.slow_client_s", "s", 1, 3600, 30, NOW,
        "A client that reads nothing for so long while its backlog is full is disconnected."),
};

static const struct dmn_config_item_row items[] = {
    {"models", "name", "string", "",
     "Name of the model: letters, digits, '.', '_' and '-', at most 63.", true},
    {"models", "path", "string", "",
     "ONNX file or network description; a relative path starts at the folder of this file.", true},
    {"models", "plan", "string", "",
     "Serve by this plan (FIRST-LAST@TEAMS|...) instead of planning. Empty: the daemon plans.",
     false},
    {"models", "latest", "bool", "false",
     "Streams of this model that do not ask for another policy drop older frames for newer ones.",
     false},
    {"models", "kernels", "string", "",
     "Comma-separated parts of primitive names to prefer, for example \"__ref\". Empty: the best.",
     false},
    {"models", "calibration", "string", "",
     "Quantise the model by this file of ranges, which \"pipectl quantize --write\" makes; a "
     "relative "
     "path starts at the folder of this file. Empty: as pipectl quantize left it, else as the file "
     "is.",
     false},
    {"eps", "name", "string", "",
     "Name of the execution place: a letter, then letters, digits, '_'.", true},
    {"eps", "cpus", "cores", "",
     "Its cores by kernel number: text such as \"0-3,6\", or a list such as [0, 1].", true},
    {"eps", "speed", "number", "1",
     "Relative speed, above 0 and at most 1, until something was measured.", false},
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
    return -1;
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
