/* SPDX-License-Identifier: Apache-2.0 */
/* The commands and options of pipesim. */
#include "tuner/pipesim/pipesim.h"

#include "tuner/search/search_table.h"

#define JSON                                                                                       \
    {                                                                                              \
        "json", 'j', NULL, NULL, "print JSON"                                                      \
    }
#define HELP                                                                                       \
    {                                                                                              \
        "help", 'h', NULL, NULL, "print help"                                                      \
    }
/* The names in tuner/pipesim/scenario.c. */
#define SCENARIOS                                                                                  \
    "noise slow-8 slow-15 slow-30 contention quota drift square frequency governor thermal "       \
    "hotplug cpuset load shape clock button"
/* Of every command that plans something; psim_subject_option() takes their values. */
#define SUBJECT                                                                                    \
    {"model", 'm', "M", "@networks @file", "a network of pipesim list, or a file"},                \
        {"platform", 'p', "P", "@platforms @file", "a machine of pipesim list, or a file"},        \
        {"layers", 'l', NULL, NULL, "treat every layer by itself, as the papers do"},              \
        {"problem", 'P', "FILE", "@file", "a recorded table instead of a network and a machine"},  \
        {"objective", 'o', "O", "throughput latency power",                                        \
         "what to optimise; default throughput"},                                                  \
        {"fps", 'f', "F", "@none", "plans must reach F frames/s"},                                 \
        {"latency", 'L', "MS", "@none",                                                            \
         "plans must keep the latency of the worst frame within MS"},                              \
        JSON, HELP

static const struct cli_option COMMON[] = {{0}};
static const struct cli_option COMPARE[] = {
    SUBJECT,
    {"algorithm", 'a', "A", TUN_SEARCH_NAMES, "run these searches instead of all", .many = true},
    {"seed", 's', "N", "@none", "random seed; default 0"},
    {"alpha", 'A', "N", "@none", "give up after N trials without a gain; default 10"},
    {"heuristic", 'H', "N", "1 2 3 4 5 6", "Shisha's heuristic; default 3"},
    {"encoding", 'e', "E", "spe ne", "how nsga2 writes plans as genes; default spe"},
    {"stages", 'k', "N", "@none", "nsga2: only the last N stages; 1: without a model"},
    {"space", 'S', "S", "default cuts places all", "which plans may be proposed"},
    {"trials", 't', "N", "@none", "stop after N trials"},
    {"frames", 'F', "N", "@none", "frames of a trial; default 10"},
    {"sigma", 'g', "S", "@none", "relative error of the costs that searches are told"},
    {"contention", 'C', "C", "@none", "slow execution places without telling the searches"},
    {"noise", 'n', "N", "@none", "relative standard deviation of what a trial measures"},
    {0}};
static const struct cli_option PLAN[] = {
    SUBJECT,
    {"one-kind", 'k', NULL, NULL, "allow only stages with one team"},
    {"front", 'F', NULL, NULL, "print the front of throughput and latency"},
    {"top", 't', "N", "@none", "print the best N plans; default 1"},
    {0}};
static const struct cli_option BOARDS[] = {
    {"model", 'm', "M", "@networks @file", "the network; default resnet101"},
    {"platform", 'p', "P", "@platforms @file", "boards of pipesim list; default xavier-nx-x4"},
    {"units", 'u', NULL, NULL, "plan the units that piped serves, not every node"},
    {"seeds", 'n', "N", "@none", "runs of each experiment; default 5"},
    {"seed", 's', "N", "@none", "random seed of the first run; default 1"},
    {"hours", 'H', "H", "@none", "simulated hours of a run; default 70"},
    {"evaluation", 'e', "S", "@none", "seconds of an evaluation on the boards; default 12"},
    {"sigma", 'g', "S", "@none", "relative error of the model's costs; default 0.1"},
    {"early", 'E', "S", "@none", "share of 3s-2l-SPE's hours before its last stage; default 2/3"},
    JSON,
    HELP,
    {0}};
static const struct cli_option MAPPING[] = {
    {"model", 'm', "M", "@networks @file", "a network of pipesim list, or a file"},
    {"platform", 'p', "P", "@platforms @file", "a machine of pipesim list, or a file"},
    {"nodes", 'n', NULL, NULL, "take every node as a unit"},
    {"export", 'e', "PLAN", "@none", "print the mapping of this plan"},
    {"import", 'i', "FILE", "@file", "print the plan of this mapping"},
    HELP,
    {0}};
static const struct cli_option LIST[] = {JSON, HELP, {0}};
static const struct cli_option REPORT[] = {
    {"seed", 's', "N", "@none", "random seed of the searches; default 1"}, HELP, {0}};
static const struct cli_option ADAPT[] = {
    SUBJECT,
    {"scenario", 's', "NAME", SCENARIOS, "run this one instead of all"},
    {"algorithm", 'a', "A", TUN_SEARCH_NAMES,
     "start this search instead of solving; default exact"},
    {"trials", 't', "N", "@none", "stop a search after N trials; default 20"},
    {"runs", 'r', "N", "@none", "runs, each with its own seed; default 20"},
    {"hours", 'H', "H", "@none", "simulated hours of the scenario noise; default 10"},
    {"seed", 'S', "N", "@none", "random seed of the first run; default 0"},
    {"noise", 'n', "N", "@none", "relative standard deviation of a window's measurement"},
    {"correlation", 'C', "R", "@none", "correlation with the previous window"},
    {"spikes", 'k', "S", "@none", "share of windows with a spike"},
    {"sigma", 'g', "S", "@none", "relative error of the planner's table"},
    {"records", 'R', "FILE", "@file", "write every decision to FILE, for replay"},
    {0}};
static const struct cli_option REPLAY[] = {JSON, HELP, {0}};
static const struct cli_argument A_FILE[] = {{"", "@file"}, {0}};

static const struct cli_command COMMANDS[] = {
    {"compare", NULL, "", "compare searches: what they find, in how many trials and what time",
     COMPARE, NULL},
    {"plan", NULL, "", "print the exact plan, runners-up, the front of throughput and latency",
     PLAN, NULL},
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
