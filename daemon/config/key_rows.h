/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/key_rows.h - the rows of the table of keys
 *
 * keys.h makes a constant DMN_KEY_ID of each, keys.c an entry of dmn_config_rows, whose texts may
 * name what keys.c includes.
 *
 * INT(ID, key, unit, least, most, default, when, help)
 * BOOL(ID, key, default, when, help)
 * STRING(ID, key, greatest length in bytes, default, when, help)
 * ENUM(ID, key, choices, index of the default, when, help)
 *
 * when: NOW: a reload applies the key; START: it takes effect at the next start. ADVANCED: with
 * either.
 */
#pragma once

#define DMN_KEY_ROWS(INT, BOOL, STRING, ENUM)                                                      \
    ENUM(LOG_LEVEL, "log_level", "error|warning|notice|info|debug", 2, NOW,                        \
         "Lowest severity to log; -v on the command line means debug.")                            \
    STRING(ADMIN_GROUP, "admin_group", 63, "", NOW,                                                \
           "Group whose members may change models, plans and configuration over the control "      \
           "socket, as root and the daemon's own user may. The groups that a client's process "    \
           "has count, so a new member logs in again first. Empty: nobody else.")                  \
    STRING(SOCKET_MODE, "socket_mode", 4, "0660", START,                                           \
           "Permissions, in octal, of the sockets that the daemon creates itself; with socket "    \
           "activation the socket unit sets them.")                                                \
    STRING(SOCKET_GROUP, "socket_group", 63, "", START,                                            \
           "Group that owns the sockets that the daemon creates itself; it must exist, and the "   \
           "daemon's user must be a member, or root. Empty: the daemon's own.")                    \
    STRING(DEFAULT_MODEL, "default_model", 63, "", NOW,                                            \
           "Model for clients and commands that name none. Empty, or not loaded: the first one; "  \
           "of the model that comes with piped only if there is no other.")                        \
    BOOL(PIN, "pin", 1, START, "Pin every thread of a team to a core of its own.")                 \
    INT(FRAMES_IN_FLIGHT, "frames_in_flight", "frames", 0, 1024, 0, START,                         \
        "Maximum number of frames of one model in its pipeline; each takes one arena. 0: enough "  \
        "for any plan on these cores.")                                                            \
    INT(DRAIN_MS, "drain_ms", "ms", 0, 600000, 10000, NOW,                                         \
        "How long a stop waits until frames in flight are answered.")                              \
    INT(STALLED_MS, "stalled_ms", "ms", 100, 3600000, 20000, NOW,                                  \
        "A stage that holds a frame this long without progress counts as stuck: the status is "    \
        "degraded, and the service watchdog is no longer fed.")                                    \
    INT(HISTORY_EVENTS, "history_events", "events", 1, 4096, 256, START,                           \
        "Number of plan changes that the history keeps.")                                          \
    INT(SPIN_US, "spin_us", "us", 0, 100000, 20, START | ADVANCED,                                 \
        "How long a team spins for its next frame before it sleeps. 0: sleep at once.")            \
    ENUM(PLANNER_OBJECTIVE, "planner.objective", "throughput|latency|power", 0, NOW,               \
         "What the planner optimises: most frames a second (then lowest latency among nearly "     \
         "equal plans), lowest latency of the worst frame, or least energy a frame. power needs "  \
         "planner.fps.")                                                                           \
    INT(PLANNER_FPS, "planner.fps", "frames/s", 0, 1000000, 0, NOW,                                \
        "Minimum frame rate of a plan. 0: no bound.")                                              \
    INT(PLANNER_LATENCY_MS, "planner.latency_ms", "ms", 0, 600000, 0, NOW,                         \
        "Maximum latency of a plan's worst frame. 0: no bound.")                                   \
    INT(PLANNER_STAGES_MAX, "planner.stages_max", "stages", 0, 64, 0, NOW,                         \
        "Maximum number of stages of a plan; the number of places of shisha. 0: one for each "     \
        "core, and shisha tries several numbers.")                                                 \
    INT(PLANNER_TUNE_S, "planner.tune_s", "s", 1, 86400, 300, NOW,                                 \
        "Maximum time of a whole retune; then the best plan so far serves.")                       \
    STRING(PLANNER_ALGORITHM, "planner.algorithm", 31, "exact", NOW | ADVANCED,                    \
           "Search that finds plans when the machine changes, and for a retune that names "        \
           "none: " TUN_SEARCH_NAMES                                                               \
           " (\"pipesim list\" describes each). exact solves the costs and changes the plan if "   \
           "that gains enough; any other search is run on live frames for every change that "      \
           "lasts, within adapt.cooldown_s and adapt.per_hour.")                                   \
    ENUM(                                                                                          \
        PLANNER_START, "planner.start", "exact|algorithm", 0, NOW | ADVANCED,                      \
        "Who finds the first plan of a model that has none saved or configured: exact, or "        \
        "planner.algorithm, whose seed serves until frames come. Then its search is run on them.") \
    INT(PLANNER_ALPHA, "planner.alpha", "trials", 0, 1000, 0, NOW | ADVANCED,                      \
        "A search gives up after this many trials without a gain. 0: the algorithm's own "         \
        "default.")                                                                                \
    INT(PLANNER_HEURISTIC, "planner.heuristic", "", 0, 6, 0, NOW | ADVANCED,                       \
        "Shisha's heuristic, 1 to 6 as in its table 1. 0: 3, and its mirror image, too.")          \
    INT(BATCH_WAIT_US, "planner.batch_wait_us", "us", 0, 1000000, 0, START | ADVANCED,             \
        "How long a team that may take several frames at once (/BATCH in a plan) waits for more "  \
        "of them, from when it was given the first. Never so long that a frame misses its "        \
        "deadline. 0: it takes those that are there.")                                             \
    INT(PLANNER_FLOOR, "planner.floor_percent", "%", 0, 50, 5, START | ADVANCED,                   \
        "Of each core, how much a model gets at least while models of higher classes want it.")    \
    INT(PLANNER_FRAMES, "planner.frames", "frames", 1, 10000, 24, NOW | ADVANCED,                  \
        "Frames in one measurement of a retune.")                                                  \
    INT(PLANNER_MS, "planner.measure_ms", "ms", 1, 600000, 2000, NOW | ADVANCED,                   \
        "Maximum time of one measurement of a retune.")                                            \
    STRING(GPIO_CHIP, "gpio.chip", 63, "", START,                                                  \
           "GPIO chip of the lines below: its label (stable when numbers change), its name "       \
           "(gpiochip0) or its path. Empty: no GPIO. The daemon looks for a missing chip every "   \
           "second.")                                                                              \
    INT(GPIO_BUTTON, "gpio.button", "line", -1, 65535, -1, START,                                  \
        "Line number of a button that retunes every model. -1: none.")                             \
    BOOL(GPIO_BUTTON_LOW, "gpio.button_active_low", 0, START, "The button pulls its line low.")    \
    INT(GPIO_POWER, "gpio.power", "line", -1, 65535, -1, START,                                    \
        "Line number of a signal that is active while power is short or cores are throttled. -1: " \
        "none.")                                                                                   \
    BOOL(GPIO_POWER_LOW, "gpio.power_active_low", 0, START, "The power line is active when low.")  \
    INT(GPIO_LED, "gpio.led", "line", -1, 65535, -1, START,                                        \
        "Line number of a status LED: steady while serving, blinking slowly while tuning and "     \
        "fast while degraded, one flash a second while draining, off otherwise. -1: none.")        \
    BOOL(GPIO_LED_LOW, "gpio.led_active_low", 0, START, "The LED is lit when low.")                \
    INT(GPIO_DEBOUNCE_MS, "gpio.debounce_ms", "ms", 0, 10000, 30, START,                           \
        "How long an input must hold a level before it counts.")                                   \
    INT(SENSORS_INTERVAL_MS, "sensors.interval_ms", "ms", 0, 60000, 200, NOW,                      \
        "How often frequencies, temperatures, pressure, quota and energy are read. 0: never; "     \
        "status then shows null, and only service times reveal changes.")                          \
    BOOL(ADAPT_ENABLED, "adapt.enabled", 1, NOW,                                                   \
         "Change the plan when frequencies, heat, interference or missing cores make another "     \
         "plan better. A plan that a user set stays while its cores are present.")                 \
    INT(ADAPT_GAIN, "adapt.gain_percent", "%", 0, 1000, 3, NOW,                                    \
        "Change the plan only if the new one is predicted to be better by this much.")             \
    INT(ADAPT_URGENT, "adapt.urgent_percent", "%", 0, 1000, 25, NOW,                               \
        "A plan that is predicted to be better by this much does not wait for adapt.cooldown_s, "  \
        "unless that has doubled twice. 0: every plan waits.")                                     \
    INT(ADAPT_COOLDOWN_S, "adapt.cooldown_s", "s", 0, 86400, 5, NOW,                               \
        "Minimum time between two changes; it doubles when plans alternate or are rolled back. "   \
        "Lost cores and the button do not wait.")                                                  \
    INT(ADAPT_HOURLY, "adapt.per_hour", "changes", 0, 100000, 30, NOW,                             \
        "Maximum number of plan changes an hour. Lost cores and the button do not count.")         \
    INT(ADAPT_PROBE_S, "adapt.probe_s", "s", 0, 86400, 5, NOW,                                     \
        "Try an EP again this long after interference made the plan abandon it. The time doubles " \
        "with each try; an EP that looks free is tried at once. 0: never.")                        \
    INT(ADAPT_WINDOW_MS, "adapt.window_ms", "ms", 20, 60000, 100, NOW | ADVANCED,                  \
        "How often service times are compared with what is expected.")                             \
    INT(ADAPT_NOTICE, "adapt.notice_millisigma", "thousandths of the spread", 3100, 11500, 6200,   \
        NOW | ADVANCED, "Detector sum at which a change is noticed and learning of costs pauses.") \
    INT(ADAPT_FIRM, "adapt.sustain_millisigma", "thousandths of the spread", 11500, 1000000,       \
        14000, NOW | ADVANCED,                                                                     \
        "Detector sum at which a change counts as sustained and triggers a decision.")             \
    INT(ADAPT_NOISE, "adapt.noise_permille", "permille", 1, 1000, 20, NOW | ADVANCED,              \
        "Minimum spread of service times to assume, however steady they are.")                     \
    INT(ADAPT_SETTLE, "adapt.settle_windows", "windows", 1, 100, 8, NOW | ADVANCED,                \
        "Windows in which a new plan is measured before it may be rolled back.")                   \
    INT(ADAPT_VERIFY, "adapt.verify_percent", "%", 1, 1000, 10, NOW | ADVANCED,                    \
        "Roll back a new plan that is slower than predicted by this much and no better than the "  \
        "previous plan.")                                                                          \
    INT(KERNELS_MEASURE_MS, "kernels.measure_ms", "ms", 0, 600000, 4000, NOW,                      \
        "How long primitives are measured on each EP when a model is first loaded on this "        \
        "machine; the result is kept. 0: use the default order.")                                  \
    STRING(BOARDS_FRAMES_SOCKET, "boards.frames_socket", 107, "/run/piped-link/frames.sock",       \
           START, "Frames socket of piped-link, for models that are served over several boards.")  \
    INT(BOARDS_MEMORY_MIB, "boards.memory_mib", "MiB", 0, 1048576, 0, NOW,                         \
        "Memory that a model may take on this board when other boards can serve it, too. A "       \
        "larger one is not packed, and served over boards only. 0: no limit; plans count with "    \
        "what is free.")                                                                           \
    INT(LIMIT_MODELS, "limits.models", "models", 1, 64, 16, NOW,                                   \
        "Maximum number of loaded models.")                                                        \
    INT(LIMIT_WEIGHT_MIB, "limits.model_weight_mib", "MiB", 1, 1048576, 4096, NOW,                 \
        "Refuse models with more weights.")                                                        \
    INT(LIMIT_ARENA_MIB, "limits.model_arena_mib", "MiB", 1, 1048576, 2048, NOW,                   \
        "Refuse models whose activations need more for one frame.")                                \
    INT(LIMIT_CONNECTIONS, "limits.connections", "connections", 1, 4096, 64, NOW,                  \
        "Maximum number of connections to the frames socket.")                                     \
    INT(LIMIT_CONNECTIONS_UID, "limits.connections_per_user", "connections", 1, 4096, 48, NOW,     \
        "Maximum number of connections of one user to the frames socket. Root, the daemon's own "  \
        "user and piped-link are not limited.")                                                    \
    INT(LIMIT_CONTROL, "limits.control_connections", "connections", 1, 1024, 32, NOW,              \
        "Maximum number of connections to the control socket. If all are taken, the idlest one "   \
        "of the user with the most makes room.")                                                   \
    INT(LIMIT_CONTROL_UID, "limits.control_connections_per_user", "connections", 1, 1024, 16, NOW, \
        "Maximum number of connections of one user to the control socket; beyond it, the user's "  \
        "idlest one makes room. Root, the daemon's own user and piped-link are not limited.")      \
    INT(LIMIT_KEPT, "limits.kept_connections", "connections", 1, 256, 8, NOW,                      \
        "How many more connections root, the daemon's own user and piped-link may have to each "   \
        "socket when all are taken, so that other users cannot lock them out.")                    \
    INT(LIMIT_HANDSHAKE_S, "limits.handshake_s", "s", 1, 3600, 10, NOW,                            \
        "Disconnect a client that has sent no HELLO to the frames socket, or no call to the "      \
        "control socket, this long after it connected.")                                           \
    INT(LIMIT_STREAMS, "limits.streams", "streams", 1, 64, 16, NOW,                                \
        "Maximum number of open streams of one connection.")                                       \
    INT(LIMIT_CREDITS, "limits.credits", "frames", 1, 256, 64, NOW,                                \
        "Maximum number of unanswered frames of one stream.")                                      \
    INT(LIMIT_POOL_MIB, "limits.pool_mib_per_user", "MiB", 1, 1048576, 1024, NOW,                  \
        "Maximum client memory of one user.")                                                      \
    INT(LIMIT_INLINE_MIB, "limits.inline_mib", "MiB", 1, 65536, 256, NOW,                          \
        "Maximum memory for the inline and f16 frames of one connection.")                         \
    INT(LIMIT_INLINE_TOTAL_MIB, "limits.inline_total_mib", "MiB", 1, 1048576, 512, NOW,            \
        "Maximum memory for the inline, f16 and shrunk frames of all connections; one user gets "  \
        "at most as much as stays free for others.")                                               \
    INT(LIMIT_BACKLOG_KIB, "limits.backlog_kib", "KiB", 64, 1048576, 1024, NOW,                    \
        "Stop reading from a connection while it has more unread answers than this.")              \
    INT(LIMIT_SLOW_S, "limits.slow_client_s", "s", 1, 3600, 30, NOW,                               \
        "Disconnect a client that reads nothing for this long while its backlog is full.")         \
    INT(LIMIT_IMAGE_MPIXELS, "limits.image_mpixels", "megapixels", 1, 1024, 64, NOW,               \
        "Refuse larger images.")                                                                   \
    INT(LIMIT_SLICE_MPIXELS, "limits.slice_mpixels", "megapixels", 1, 1024, 9, NOW,                \
        "Shrink larger images beside the pipeline, in slices, so that no frame waits for them; "   \
        "from a third on while another user has a stream of the model.")                           \
    STRING(LIMIT_USER_WEIGHTS, "limits.user_weights", 250, "", NOW,                                \
           "Shares of computing time beside other users: \"UID=WEIGHT,...\", weights 1 to 1000; "  \
           "other users have 1. New streams use it.")
