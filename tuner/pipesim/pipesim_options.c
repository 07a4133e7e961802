/* SPDX-License-Identifier: Apache-2.0 */
/* The commands and options of pipesim. */
#include "tuner/pipesim/pipesim.h"

#include "tuner/search/search_table.h"

#define AT(field) offsetof(struct psim_options, field)
#define TEXT(field) CLI_TEXT, AT(field)
#define FLAG(field) CLI_FLAG, AT(field)

#define JSON "json", NULL, NULL, "print JSON", FLAG(json)
#define HELP "help", NULL, NULL, "print help", CLI_HELP
/* The names in tuner/pipesim/scenario.c. */
#define SCENARIOS                                                                                  \
    "noise slow-8 slow-15 slow-30 contention quota drift square frequency governor thermal "       \
    "hotplug cpuset load shape clock button"
/* Of every command that plans something; psim_subject() reads them. */
/* clang-format off */
#define SUBJECT                                                                                    \
    {"model", "M", "@networks @file", "a network of pipesim list, or a file", TEXT(model)},        \
    {"platform", "P", "@platforms @file", "a machine of pipesim list, or a file", TEXT(platform)}, \
    {"layers", NULL, NULL, "treat every layer by itself, as the papers do", FLAG(layers)},         \
    {"problem", "FILE", "@file", "a recorded table instead of a network and a machine",            \
     TEXT(problem)},                                                                               \
    {"objective", "O", "throughput latency power", "what to optimise; default throughput",         \
     CLI_WORD, AT(objective)},                                                                     \
    {"fps", "F", "@none", "plans must reach F frames/s", CLI_REAL, AT(fps), 1e-6, 1e6},            \
    {"latency", "MS", "@none", "plans must keep the latency of the worst frame within MS",         \
     CLI_REAL, AT(latency_ms), 1e-6, 1e9},                                                         \
    {"stages-max", "N", "@none", "plans of at most N stages; Shisha's N", CLI_UNSIGNED,            \
     AT(stages_max), 1, 64},                                                                       \
    {JSON}, {HELP}
/* clang-format on */

static const struct cli_option COMMON[] = {{0}};
static const struct cli_option COMPARE[] = {
    SUBJECT,
    {"algorithm", "A", TUN_SEARCH_NAMES, "run these searches instead of all", TEXT(algorithm),
     .many = true},
    {"seed", "N", "@none", "random seed; default 0", CLI_WHOLE, AT(seed), 0, CLI_WHOLE_MAX},
    {"alpha", "N", "@none", "give up after N trials without a gain; default 10", CLI_UNSIGNED,
     AT(alpha), 1, 1e6},
    {"heuristic", "N", "1 2 3 4 5 6", "Shisha's heuristic; default 3 both ways", CLI_UNSIGNED,
     AT(heuristic), 1, 6},
    {"encoding", "E", "spe ne", "how nsga2 writes plans as genes; default spe", CLI_WORD,
     AT(encoding)},
    {"stages", "N", "@none", "nsga2: only the last N stages; 1: without a model", CLI_UNSIGNED,
     AT(stages), 1, 16},
    {"no-hints", NULL, NULL, "Pipe-search takes units as equally heavy", FLAG(no_hints)},
    {"space", "S", "default cuts places pipelines all", "which plans may be proposed", CLI_WORD,
     AT(space)},
    {"trials", "N", "@none", "stop after N trials", CLI_WHOLE, AT(trials), 1, 1e9},
    {"stop-fps", "F", "@none", "stop at the first plan of F frames/s", CLI_REAL, AT(stop_fps), 1e-6,
     1e6},
    {"frames", "N", "@none", "frames of a trial; default 10", CLI_UNSIGNED, AT(frames), 1, 1e6},
    {"predict", NULL, NULL, "tell searches what Pipe-it's equations 5 to 8 foretell of the costs",
     FLAG(predict)},
    {"sigma", "S", "@none", "relative error of the costs that searches are told", CLI_REAL,
     AT(sigma), 0, 1},
    {"contention", "C", "@none", "slow execution places without telling the searches",
     TEXT(contention)},
    {"noise", "N", "@none", "relative standard deviation of what a trial measures", CLI_REAL,
     AT(noise), 0, 1},
    {0}};
static const struct cli_option PLAN[] = {
    SUBJECT,
    {"one-kind", NULL, NULL, "allow only stages with one team", FLAG(one_ep)},
    {"front", NULL, NULL, "print the front of throughput and latency", FLAG(front)},
    {"top", "N", "@none", "print the best N plans; default 1", CLI_UNSIGNED, AT(top), 1, 64},
    {0}};
static const struct cli_option MIX[] = {
    {"platform", "P", "@platforms @file", "a machine of pipesim list, or a file", TEXT(platform)},
    {"changes", "N", "@none", "changes of cores in a frame's route; default 1", CLI_UNSIGNED,
     AT(changes), 0, 7},
    {"objective", "O", "fair energy soonest weighted", "what to optimise; default fair", CLI_WORD,
     AT(objective)},
    {"floor", "S", "@none", "share of a core that lower classes keep; default 0", CLI_REAL,
     AT(floor), 0, 0.5},
    {"simulate", "FRAMES", "@none", "simulate so many frames", CLI_WHOLE, AT(simulate), 1, 1e9},
    {"seed", "N", "@none", "random seed of the simulation; default 0", CLI_WHOLE, AT(seed), 0,
     CLI_WHOLE_MAX},
    {"front", NULL, NULL, "print what parts of the wishes cost in energy", FLAG(front)},
    {JSON},
    {HELP},
    {0}};
static const struct cli_option BOARDS[] = {
    {"model", "M", "@networks @file", "the network; default resnet101", TEXT(model)},
    {"platform", "P", "@platforms @file", "boards of pipesim list; default xavier-nx-x4",
     TEXT(platform)},
    {"units", NULL, NULL, "plan the units that piped serves, not every node", FLAG(units)},
    {"seeds", "N", "@none", "runs of each experiment; default 5", CLI_UNSIGNED, AT(seeds), 1, 1000},
    {"seed", "N", "@none", "random seed of the first run; default 1", CLI_WHOLE, AT(seed), 0,
     CLI_WHOLE_MAX},
    {"hours", "H", "@none", "simulated hours of a run; default 70", CLI_REAL, AT(hours), 0.1,
     10000},
    {"evaluation", "S", "@none", "seconds of an evaluation on the boards; default 12", CLI_SECONDS,
     AT(evaluation_s), 0.1, 100000},
    {"sigma", "S", "@none", "relative error of the model's costs; default 0.1", CLI_REAL, AT(sigma),
     0, 1},
    {"early", "S", "@none", "share of 3s-2l-SPE's hours before its last stage; default 0.2",
     CLI_REAL, AT(early), 0, 1},
    {JSON},
    {HELP},
    {0}};
static const struct cli_option MAPPING[] = {
    {"model", "M", "@networks @file", "a network of pipesim list, or a file", TEXT(model)},
    {"platform", "P", "@platforms @file", "a machine of pipesim list, or a file", TEXT(platform)},
    {"nodes", NULL, NULL, "take every node as a unit", FLAG(nodes)},
    {"export", "PLAN", "@none", "print the mapping of this plan", TEXT(plan)},
    {"import", "FILE", "@file", "print the plan of this mapping", TEXT(file)},
    {HELP},
    {0}};
static const struct cli_option LIST[] = {{JSON}, {HELP}, {0}};
static const struct cli_option REPORT[] = {{"seed", "N", "@none",
                                            "random seed of the searches; default 1", CLI_WHOLE,
                                            AT(seed), 0, CLI_WHOLE_MAX},
                                           {HELP},
                                           {0}};
static const struct cli_option ADAPT[] = {
    SUBJECT,
    {"scenario", "NAME", SCENARIOS, "run this one instead of all", TEXT(scenario)},
    {"algorithm", "A", TUN_SEARCH_NAMES, "start this search instead of solving; default exact",
     TEXT(algorithm)},
    {"trials", "N", "@none", "stop a search after N trials; default 20", CLI_WHOLE, AT(trials), 1,
     1000},
    {"runs", "N", "@none", "runs, each with its own seed; default 20", CLI_WHOLE, AT(runs), 1,
     10000},
    {"hours", "H", "@none", "simulated hours of the scenario noise; default 10", CLI_REAL,
     AT(hours), 0.01, 10000},
    {"seed", "N", "@none", "random seed of the first run; default 0", CLI_WHOLE, AT(seed), 0, 9e15},
    {"noise", "N", "@none", "relative standard deviation of a window's measurement", CLI_REAL,
     AT(noise), 0, 1},
    {"correlation", "R", "@none", "correlation with the previous window", CLI_REAL, AT(correlation),
     0, 0.99},
    {"spikes", "S", "@none", "share of windows with a spike", CLI_REAL, AT(spikes), 0, 1},
    {"sigma", "S", "@none", "relative error of the planner's table", CLI_REAL, AT(sigma), 0, 1},
    {"records", "FILE", "@file", "write every decision to FILE, for replay", TEXT(records)},
    {0}};
static const struct cli_option REPLAY[] = {{JSON}, {HELP}, {0}};
static const struct cli_argument A_FILE[] = {{"", "@file"}, {0}};
static const struct cli_argument NETWORKS[] = {{"*", "@networks @file"}, {0}};

static const struct cli_command COMMANDS[] = {
    {"compare", NULL, "", "compare searches: what they find, in how many trials and what time",
     COMPARE, NULL},
    {"plan", NULL, "", "print the exact plan, runners-up, the front of throughput and latency",
     PLAN, NULL},
    {"mix", NULL, "NETWORK[=RATE][,KEY=VALUE]...",
     "plan several networks on one set of cores, with its bound", MIX, NETWORKS},
    {"boards", NULL, "", "repeat AutoDiCE's experiments over boards with simulated time", BOARDS,
     NULL},
    {"mapping", NULL, "", "turn a plan into AutoDiCE's mapping.json, or one into a plan", MAPPING,
     NULL},
    {"list", NULL, "", "list platforms, networks and algorithms", LIST, NULL},
    {"report", NULL, "FILE.html", "draw the papers' figures from searches that run now", REPORT,
     A_FILE},
    {"adapt", NULL, "", "simulate machines that change: what is noticed, when, and the result",
     ADAPT, NULL},
    {"replay", NULL, "FILE", "repeat decisions that a daemon recorded", REPLAY, A_FILE},
    {0}};
const struct cli_program psim_program = {"pipesim", COMMON, COMMANDS};
