/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/common/options.h"

#include "base/cli/cli_print.h"
#include "base/pixfmt.h"
#include "search_names.h"

#define NAMED 256 /* the id of a command's options: they are found by name */

#define MODEL                                                                                      \
    {                                                                                              \
        "model", NAMED, "M", "@models", "the model; default: the daemon's default model"           \
    }
#define ONLY_MODEL                                                                                 \
    {                                                                                              \
        "model", NAMED, "M", "@models", "only this model"                                          \
    }
static const struct cli_option COMMON[] = {
    {"socket", CTL_SOCKET, "PATH", "@file", "control socket"},
    {"timeout", CTL_TIMEOUT, "S", "@none", "seconds to wait for an answer; 0: for ever"},
    {"json", CTL_JSON, NULL, NULL, "print JSON"},
    {0}};
static const struct cli_option NONE[] = {{0}};
static const struct cli_option ONE_MODEL[] = {ONLY_MODEL, {0}};
static const struct cli_option STATUS[] = {
    ONLY_MODEL,
    {"all", NAMED, NULL, NULL, "the segments of models over boards, too, as models of their own"},
    {0}};
static const struct cli_option CONFIG[] = {
    {"all", NAMED, NULL, NULL, "advanced keys, too, whose defaults suit"}, {0}};
static const struct cli_option HEALTH[] = {
    {"live", NAMED, NULL, NULL, "it answers"},
    {"ready", NAMED, NULL, NULL, "it serves all its models, or the one of --model (the default)"},
    ONLY_MODEL,
    {"wait", NAMED, "S", "@none", "wait up to S seconds for that"},
    {0}};
static const struct cli_option UNITS[] = {
    ONLY_MODEL,
    {"sort", NAMED, "KEY", "unit time weight", "order; default unit, else the largest first"},
    {0}};
static const struct cli_option DOCTOR[] = {
    ONLY_MODEL,
    {"seconds", NAMED, "S", "@none", "watch for S seconds; default 2"},
    {"save", NAMED, "FILE", "@file", "write what was seen to FILE, for a report"},
    {"sample", NAMED, "FILE", "@file", "judge a FILE that --save wrote, without a daemon"},
    {0}};
static const struct cli_option REPORT[] = {
    {"output", NAMED, "FILE", "@file", "the page, as in report.html", .letter = 'o'},
    {"seconds", NAMED, "S", "@none", "watch for S seconds; default 5"},
    ONLY_MODEL,
    {0}};
static const struct cli_option TOP[] = {
    {"model", NAMED, "M", "@models", "show this model first; with --once: only this one"},
    {"interval", NAMED, "S", "@none", "seconds from one picture to the next; default 1"},
    {"once", NAMED, NULL, NULL, "print one picture as text"},
    {0}};
static const struct cli_option INFER[] = {
    MODEL,
    {"raw", NAMED, "OUT.f32", "@file", "write all outputs as little-endian floats"},
    {"expect", NAMED, "LABELS", "@file",
     "file with the expected class of each frame; print the accuracy"},
    {"list", NAMED, "FILE", "@file", "read more file names from FILE"},
    {"top", NAMED, "N", "@none", "show N classes; default 5"},
    {"draw", NAMED, "OUT.jpg", "@file", "draw what was found on the picture; .jpg or .png"},
    {"video", NAMED, "WxH:FORMAT", "@none",
     "FILE is raw frames: of a pipe, until its end; default -"},
    {"inline", NAMED, NULL, NULL, "send the bytes through the socket, not through shared memory"},
    {0}};
static const struct cli_option BENCH[] = {
    MODEL,
    {"frames", NAMED, "N", "@none", "stop after N frames, over all clients"},
    {"seconds", NAMED, "S", "@none", "stop after S seconds; default 5"},
    {"clients", NAMED, "C", "@none", "connections; default 1"},
    {"in-flight", NAMED, "N", "@none",
     "unanswered frames of each client; default: as many as the plan needs"},
    {"inline", NAMED, NULL, NULL, "send the bytes through the socket, not through shared memory"},
    {"rate", NAMED, "FPS", "@none", "send at this rate over all clients"},
    {"verify", NAMED, NULL, NULL, "compare answers with those to single frames"},
    {"autodice", NAMED, NULL, NULL, "20 frames, one after the other; report their averages"},
    {"pixfmt", NAMED, "F", PIXFMT_NAMES, "format of the frames; default tensor"},
    {"size", NAMED, "WxH", "@none", "size of the pictures; default: the model's"},
    {"policy", NAMED, "P", "block latest reject", "what happens when the daemon is busy"},
    {"deadline", NAMED, "MS", "@none", "deadline of each frame"},
    {"seed", NAMED, "N", "@none", "random seed for frame contents"},
    {"reconnect", NAMED, "S", "@none", "seconds to look for a daemon that went away; default 30"},
    {0}};
static const struct cli_option PLAN[] = {
    MODEL,
    {"max", NAMED, "N", "@none", "front: show at most N plans"},
    {"boards", NAMED, NULL, NULL, "front: plans over all boards that are there"},
    {0}};
static const struct cli_argument PLAN_WORDS[] = {{"", "show set auto front explain export import"},
                                                 {"export", "@file"},
                                                 {"import", "@file"},
                                                 {0}};
static const struct cli_option MODELS[] = {
    {"plan", NAMED, "PLAN", "@none", "load: serve the model by this plan"},
    {"shape", NAMED, "NAME=SIZES", "@none",
     "load, inspect: sizes of an input, as in images=1x3x480x640, or of an open dimension",
     .many = true},
    {"save", NAMED, NULL, NULL, "load, unload: also for the next starts of the daemon"},
    {"write-sidecar", NAMED, NULL, NULL, "inspect: write a draft of the sidecar beside FILE"},
    {"folder", NAMED, "DIR", "@folder", "fetch: put the files into DIR; default: here"},
    {"catalogue", NAMED, "FILE", "@file", "fetch: FILE, or a folder, has further rows"},
    {"force", NAMED, NULL, NULL, "inspect --write-sidecar, fetch: replace files that are there"},
    {"all", NAMED, NULL, NULL, "list: the segments of models over boards, too, as models"},
    {0}};
static const struct cli_argument MODELS_WORDS[] = {{"", "list inspect fetch load unload"},
                                                   {"inspect", "@file"},
                                                   {"load", "@file"},
                                                   {"unload", "@models"},
                                                   {0}};
static const struct cli_option RETUNE[] = {
    MODEL,
    {"algorithm", NAMED, "A", SEARCH_NAMES, "the search; default: the key planner.algorithm"},
    {"objective", NAMED, "O", "throughput latency power",
     "what to optimise; default: the key planner.objective"},
    {"fps", NAMED, "F", "@none", "plans must reach F frames/s"},
    {"latency", NAMED, "MS", "@none", "plans must keep the latency of the worst frame within MS"},
    {"alpha", NAMED, "N", "@none", "give up after N trials without a gain"},
    {"heuristic", NAMED, "H", "1 2 3 4 5 6", "Shisha's heuristic; default 3"},
    {"encoding", NAMED, "E", "spe ne", "how nsga2 writes plans as genes; default spe"},
    {"stages", NAMED, "N", "@none", "nsga2: only the last N stages; 1: without a model"},
    {"trials", NAMED, "N", "@none", "stop after N trials"},
    {"seed", NAMED, "N", "@none", "random seed of the search"},
    {"wait", NAMED, NULL, NULL, "return when the search has ended (the default)"},
    {"no-wait", NAMED, NULL, NULL, "return when the search has begun"},
    {"cancel", NAMED, NULL, NULL, "end the running search; the previous plan serves again"},
    {0}};
static const struct cli_option HISTORY[] = {
    ONLY_MODEL,
    {"limit", NAMED, "N", "@none", "show the newest N events"},
    {"trials", NAMED, NULL, NULL, "show the trials, too"},
    {0}};
static const struct cli_option PROFILE[] = {
    {"ms", NAMED, "N", "@none", "time for all benchmarks together; default 8000"}, {0}};
static const struct cli_option TRACE[] = {
    {"seconds", NAMED, "S", "@none", "record for S seconds; default 10"},
    {"output", NAMED, "FILE", "@file", "the file, as in slow.pftrace", .letter = 'o'},
    {"ring-kib", NAMED, "N", "@none", "KiB of each team's ring, a power of two; default 256"},
    {0}};
static const struct cli_option OPTIMISE[] = {
    MODEL,
    {"objective", NAMED, "O", "latency memory", "what to optimise; default latency"},
    {"algorithm", NAMED, "A", "dijkstra a-star q-learning ds+ ds rs",
     "the search; default dijkstra"},
    {"memory", NAMED, "MIB", "@none", "keep packed weights below MIB"},
    {"inexact", NAMED, NULL, NULL, "allow primitives that round more than f32"},
    {"calibrate", NAMED, "DIR", "@folder", "allow them where examples in DIR keep their class"},
    {"agreement", NAMED, "R", "@none", "least share of examples that keep it; default 0.99"},
    {"episodes", NAMED, "N", "@none", "episodes of q-learning, paths of rs"},
    {"seed", NAMED, "N", "@none", "random seed of q-learning and rs"},
    {"ms", NAMED, "N", "@none", "time to measure each execution place"},
    {"pareto", NAMED, NULL, NULL, "change nothing; list the best choices"},
    {"page", NAMED, "FILE", "@file", "with a chart of them in the page FILE.html"},
    {0}};
static const struct cli_option QUANTIZE[] = {
    MODEL,
    {"calibrate", NAMED, "DIR", "@folder", "examples: pictures or raw float32"},
    {"min-max", NAMED, NULL, NULL, "find ranges by extremes"},
    {"kl", NAMED, NULL, NULL, "find ranges by Kullback-Leibler divergence"},
    {"symmetric", NAMED, NULL, NULL, "give activations no zero point"},
    {"keep", NAMED, "OP", "@none", "leave this operator f32", .many = true},
    {"bound", NAMED, "PERCENT", "@none",
     "least share of examples that keep their class; default 98"},
    {"ms", NAMED, "N", "@none", "time to measure each model on each execution place"},
    {"write", NAMED, "FILE", "@file", "write the ranges to FILE, for the configuration"},
    {"off", NAMED, NULL, NULL, "serve the f32 model again"},
    {0}};
static const struct cli_option BOARD[] = {
    {"state-dir", NAMED, "DIR", "@folder", "piped-link's state; default /var/lib/piped-link"},
    {"runtime-dir", NAMED, "DIR", "@folder", "list: piped-link's reports; default /run/piped-link"},
    {"replace", NAMED, NULL, NULL, "key: make a new pair in place of the present one"},
    {0}};
static const struct cli_argument BOARD_WORDS[] = {{"", "key list add remove"}, {0}};
static const struct cli_argument FILES[] = {{"*", "@file"}, {0}};
static const struct cli_argument A_MODEL[] = {{"", "@models"}, {0}};

static const struct cli_command COMMANDS[] = {
    {"infer", NULL, "FILE...", "print answers to pictures (JPEG, PNG, PPM) or tensors (.npy, .f32)",
     INFER, FILES, .group = "use"},
    {"bench", NULL, "", "stream frames; report speed, latency, order and loss", BENCH, NULL},
    {"status", NULL, "", "show what is served, by which plan, on which cores", STATUS, NULL,
     .group = "look"},
    {"top", NULL, "", "watch models, stages, boards, clocks and decisions", TOP, NULL},
    {"health", NULL, "", "exit with 0 if it serves; for containers and scripts", HEALTH, NULL},
    {"doctor", NULL, "", "say why it is slow or refuses frames, and what to do", DOCTOR, NULL},
    {"report", NULL, "", "write a page of what is served, how fast, why, on what machine", REPORT,
     NULL},
    {"units", NULL, "", "list units: time, share of a frame, primitives", UNITS, NULL},
    {"costs", NULL, "", "show the time of each unit on each execution place and width", ONE_MODEL,
     NULL},
    {"history", NULL, "", "show what changed a plan, and what was tried", HISTORY, NULL},
    {"trace", NULL, "", "record units, waits, frames and decisions for ui.perfetto.dev", TRACE,
     NULL},
    {"metrics", NULL, "", "print metrics in Prometheus text format", NONE, NULL},
    {"config", NULL, "", "show the configuration, and where each value is from", CONFIG, NULL},
    {"subscribe", "watch", "", "print a line for every change, until interrupted", NONE, NULL},
    {"models", NULL, "[list | fetch [NAME] | inspect FILE | load NAME [FILE] | unload NAME]",
     "list, load, unload and fetch models; look at a file first", MODELS, MODELS_WORDS,
     .group = "change"},
    {"plan", NULL, "[show | set PLAN | auto | front | explain | export FILE | import FILE]",
     "show, explain or set the plan; list others; plan automatically", PLAN, PLAN_WORDS},
    {"retune", NULL, "", "search for a better plan on live frames", RETUNE, NULL},
    {"optimise", "optimize", "[MODEL]", "measure the primitives again and serve by the best",
     OPTIMISE, A_MODEL},
    {"quantize", "quantise", "[MODEL]", "serve an f32 model on integers, or stop that", QUANTIZE,
     A_MODEL},
    {"profile", NULL, "", "measure the cores, to predict costs that were not measured", PROFILE,
     NULL},
    {"reload", NULL, "", "read the configuration again", NONE, NULL},
    {"board", NULL, "[key | list | add NAME ADDRESS PUBLIC-KEY | remove NAME]",
     "show or make this board's keys; list the boards that it works with", BOARD, BOARD_WORDS,
     .group = "boards"},
    {0}};
const struct cli_program ctl_program = {"pipectl", COMMON, COMMANDS};

bool ctl_print_help(FILE *to, const char *command)
{
    const struct cli_command *c = cli_find(COMMANDS, command);

    if (!c) {
        return false;
    }
    cli_print_help(to, &ctl_program, c);
    if (c->options == RETUNE) {
        static const char *const searches[][2] = {SEARCH_HELP};

        fputs("\nsearches:\n", to);
        for (size_t i = 0; searches[i][0]; i++) {
            cli_print_entry(to, searches[i][0], searches[i][1]);
        }
    }
    return true;
}
