/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/common/options.h"

#include "base/pixfmt.h"
#include "search_names.h"

#define AT(field) offsetof(struct ctl_options, field)
#define TEXT(field) CLI_TEXT, AT(field)
#define FLAG(field) CLI_FLAG, AT(field)

#define THE_MODEL "model", "M", "@models", "the model; default: the daemon's default model"
#define ONLY_MODEL "model", "M", "@models", "only this model"
static const struct cli_option COMMON[] = {
    {"socket", "PATH", "@file", "control socket", CLI_TEXT, offsetof(struct ctl_common, socket)},
    {"timeout", "S", "@none", "seconds to wait for an answer; 0: for ever", CLI_TEXT,
     offsetof(struct ctl_common, timeout)},
    {"json", NULL, NULL, "print JSON", CLI_FLAG, offsetof(struct ctl_common, json)},
    {0}};
static const struct cli_option NONE[] = {{0}};
static const struct cli_option ONE_MODEL[] = {{ONLY_MODEL, .parameter = "model"}, {0}};
static const struct cli_option STATUS[] = {
    {ONLY_MODEL, .parameter = "model"},
    {"all", NULL, NULL, "the segments of models over boards, too, as models of their own",
     FLAG(all)},
    {0}};
static const struct cli_option CONFIG[] = {
    {"all", NULL, NULL, "advanced keys, too, whose defaults suit", FLAG(all)}, {0}};
static const struct cli_option HEALTH[] = {
    {"live", NULL, NULL, "it answers", FLAG(live)},
    {"ready", NULL, NULL, "it serves all its models, or the one of --model (the default)",
     CLI_NO_FLAG, AT(live)},
    {ONLY_MODEL, TEXT(model)},
    {"wait", "S", "@none", "wait up to S seconds for that", CLI_SECONDS, AT(wait_s), 0, 86400},
    {0}};
static const struct cli_option UNITS[] = {
    {ONLY_MODEL, .parameter = "model"},
    {"sort", "KEY", "unit time weight", "order; default unit, else the largest first", TEXT(sort)},
    {0}};
static const struct cli_option DOCTOR[] = {
    {ONLY_MODEL, TEXT(model)},
    {"seconds", "S", "@none", "watch for S seconds; default 2", CLI_SECONDS, AT(seconds), 0.1, 600},
    {"save", "FILE", "@file", "write what was seen to FILE, for a report", TEXT(save_to)},
    {"sample", "FILE", "@file", "judge a FILE that --save wrote, without a daemon", TEXT(sample)},
    {0}};
static const struct cli_option REPORT[] = {
    {"output", "FILE", "@file", "the page, as in report.html", TEXT(output), .letter = 'o'},
    {"seconds", "S", "@none", "watch for S seconds; default 5", CLI_SECONDS, AT(seconds), 0.1,
     3600},
    {ONLY_MODEL, TEXT(model)},
    {0}};
static const struct cli_option TOP[] = {
    {"model", "M", "@models", "show this model first; with --once: only this one", TEXT(model)},
    {"interval", "S", "@none", "seconds from one picture to the next; default 1", CLI_SECONDS,
     AT(interval_s), 0.1, 3600},
    {"once", NULL, NULL, "print one picture as text", FLAG(once)},
    {0}};
static const struct cli_option INFER[] = {
    {THE_MODEL, TEXT(model)},
    {"raw", "OUT.f32", "@file", "write all outputs as little-endian floats", TEXT(raw)},
    {"expect", "LABELS", "@file", "file with the expected class of each frame; print the accuracy",
     TEXT(expect)},
    {"list", "FILE", "@file", "read more file names from FILE", CLI_TEXTS, AT(lists)},
    {"top", "N", "@none", "show N classes; default 5", CLI_UNSIGNED, AT(top), 1, 1000},
    {"draw", "OUT.jpg", "@file", "draw what was found on the picture; .jpg or .png", TEXT(draw)},
    {"video", "WxH:FORMAT", "@none", "FILE is raw frames: of a pipe, until its end; default -",
     TEXT(video)},
    {"inline", NULL, NULL, "send the bytes through the socket, not through shared memory",
     FLAG(inline_frames)},
    {0}};
static const struct cli_option BENCH[] = {
    {THE_MODEL, TEXT(model)},
    {"frames", "N", "@none", "stop after N frames, over all clients", CLI_WHOLE, AT(frames), 1,
     1e12},
    {"seconds", "S", "@none", "stop after S seconds; default 5", CLI_SECONDS, AT(seconds), 0.001,
     1e9},
    {"clients", "C", "@none", "connections; default 1", CLI_UNSIGNED, AT(clients), 1,
     CTL_CLIENTS_MAX},
    {"in-flight", "N", "@none",
     "unanswered frames of each client; default: as many as the plan needs", CLI_UNSIGNED,
     AT(in_flight), 1, 256},
    {"inline", NULL, NULL, "send the bytes through the socket, not through shared memory",
     FLAG(inline_frames)},
    {"rate", "FPS", "@none", "send at this rate over all clients", CLI_REAL, AT(rate), 0.001, 1e7},
    {"verify", NULL, NULL, "compare answers with those to single frames", FLAG(verify)},
    {"autodice", NULL, NULL, "20 frames, one after the other; report their averages",
     FLAG(autodice)},
    {"pixfmt", "F", PIXFMT_NAMES, "format of the frames; default tensor", CLI_WORD, AT(pixfmt)},
    {"size", "WxH", "@none", "size of the pictures; default: the model's", TEXT(size)},
    {"policy", "P", "block latest reject", "what happens when the daemon is busy", CLI_WORD,
     AT(policy)},
    {"deadline", "MS", "@none", "deadline of each frame", CLI_REAL, AT(deadline_ms), 0.001, 1e9},
    {"seed", "N", "@none", "random seed for frame contents", CLI_WHOLE, AT(seed), 0, 1e15},
    {"reconnect", "S", "@none", "seconds to look for a daemon that went away; default 30",
     CLI_SECONDS, AT(reconnect_s), 0.001, 1e6},
    {0}};
static const struct cli_option PLAN[] = {
    {THE_MODEL, .parameter = "model"},
    {"max", "N", "@none", "front: show at most N plans", CLI_WHOLE, 0, 1, 256, "max"},
    {"boards", NULL, NULL, "front: plans over all boards that are there", CLI_FLAG,
     .parameter = "boards"},
    {"apply", NULL, NULL, "mix: serve all models by these plans", CLI_FLAG, .parameter = "apply"},
    {"front", NULL, NULL, "mix: what parts of the wishes cost", CLI_FLAG, .parameter = "front"},
    {0}};
static const struct cli_argument PLAN_WORDS[] = {
    {"", "show set auto front explain mix export import"},
    {"export", "@file"},
    {"import", "@file"},
    {0}};
static const struct cli_option MODELS[] = {
    {"plan", "PLAN", "@none", "load: serve the model by this plan", TEXT(plan)},
    {"shape", "NAME=SIZES", "@none",
     "load, inspect: sizes of an input, as in images=1x3x480x640, or of an open dimension",
     CLI_TEXTS, AT(shapes), .many = true},
    {"rate", "FPS", "@none", "load, set: frames a second that it is to have; 0: as many as come",
     CLI_REAL, 0, 0, 1e6, "rate"},
    {"weight", "W", "@none", "load, set: its part of the cores beside others of its class; 1",
     CLI_REAL, 0, 0.001, 1000, "weight"},
    {"class", "N", "0 1 2 3 4 5 6 7", "load, set: models of a higher class go first; 0", CLI_WHOLE,
     0, 0, 7, "class"},
    {"deadline", "MS", "@none", "load, set: each frame is due within MS; needs a rate; 0: none",
     CLI_REAL, 0, 0, 600000, "deadline_ms"},
    {"max-share", "S", "@none", "load, set: of all cores' time that it uses at most; 1", CLI_REAL,
     0, 0.01, 1, "max_share"},
    {"save", NULL, NULL, "load, set, unload: also for the next starts of the daemon", FLAG(save)},
    {"write-sidecar", NULL, NULL, "inspect: write a draft of the sidecar beside FILE",
     FLAG(write_sidecar)},
    {"folder", "DIR", "@folder", "fetch: put the files into DIR; default: here", TEXT(folder)},
    {"catalogue", "FILE", "@file", "fetch: FILE, or a folder, has further rows", TEXT(catalogue)},
    {"force", NULL, NULL, "inspect --write-sidecar, fetch: replace files that are there",
     FLAG(force)},
    {"all", NULL, NULL, "list: the segments of models over boards, too, as models", FLAG(all)},
    {0}};
static const struct cli_argument MODELS_WORDS[] = {{"", "list inspect fetch load set unload"},
                                                   {"inspect", "@file"},
                                                   {"load", "@file"},
                                                   {"set", "@models"},
                                                   {"unload", "@models"},
                                                   {0}};
static const struct cli_option RETUNE[] = {
    {THE_MODEL, .parameter = "model"},
    {"algorithm", "A", SEARCH_NAMES, "the search; default: the key planner.algorithm",
     .parameter = "algorithm"},
    {"boards", NULL, NULL, "plans over all boards that are there, by exact or nsga2", CLI_FLAG,
     .parameter = "boards"},
    {"objective", "O", "throughput latency power",
     "what to optimise; default: the key planner.objective", .parameter = "objective"},
    {"fps", "F", "@none", "plans must reach F frames/s", CLI_REAL, 0, 1e-3, 1e9, "fps"},
    {"latency", "MS", "@none", "plans must keep the latency of the worst frame within MS", CLI_REAL,
     0, 1e-3, 1e9, "latency_ms"},
    {"alpha", "N", "@none", "give up after N trials without a gain", CLI_WHOLE, 0, 1, 1e5, "alpha"},
    {"heuristic", "H", "1 2 3 4 5 6",
     "Shisha's heuristic; default: the key planner.heuristic, or 3 both ways", CLI_WHOLE, 0, 1, 6,
     "heuristic"},
    {"encoding", "E", "spe ne", "how nsga2 writes plans as genes; default spe",
     .parameter = "encoding"},
    {"stages", "N", "@none", "nsga2: only the last N stages; 1: without a model", CLI_WHOLE, 0, 1,
     16, "stages"},
    {"trials", "N", "@none", "stop after N trials", CLI_WHOLE, 0, 1, 1e6, "trials"},
    {"seed", "N", "@none", "random seed of the search", CLI_WHOLE, 0, 0, CLI_WHOLE_MAX, "seed"},
    {"wait", NULL, NULL, "return when the search has ended (the default)", CLI_FLAG,
     .parameter = "wait"},
    {"no-wait", NULL, NULL, "return when the search has begun", CLI_NO_FLAG, .parameter = "wait"},
    {"cancel", NULL, NULL, "end the running search; the previous plan serves again", FLAG(cancel)},
    {0}};
static const struct cli_option HISTORY[] = {
    {ONLY_MODEL, .parameter = "model"},
    {"limit", "N", "@none", "show the newest N events", CLI_WHOLE, 0, 1, 1e6, "limit"},
    {"trials", NULL, NULL, "show the trials, too", FLAG(trials)},
    {0}};
static const struct cli_option PROFILE[] = {{"ms", "N", "@none",
                                             "time for all benchmarks together; default 8000",
                                             CLI_WHOLE, 0, 1, 600000, "ms"},
                                            {0}};
static const struct cli_option TRACE[] = {
    {"seconds", "S", "@none", "record for S seconds; default 10", CLI_SECONDS, AT(seconds), 0.001,
     3600},
    {"output", "FILE", "@file", "the file, as in slow.pftrace", TEXT(output), .letter = 'o'},
    {"ring-kib", "N", "@none", "KiB of each team's ring, a power of two; default 256", CLI_UNSIGNED,
     AT(ring_kib), 4, 16384},
    {0}};
static const struct cli_option OPTIMISE[] = {
    {THE_MODEL, .parameter = "model"},
    {"objective", "O", "latency memory", "what to optimise; default latency",
     .parameter = "objective"},
    {"algorithm", "A", "dijkstra a-star q-learning ds+ ds rs", "the search; default dijkstra",
     .parameter = "algorithm"},
    {"memory", "MIB", "@none", "keep packed weights below MIB", CLI_REAL, 0, 1e-3, 1e6,
     "packed_mib"},
    {"inexact", NULL, NULL, "allow primitives that round more than f32", CLI_FLAG,
     .parameter = "inexact"},
    {"calibrate", "DIR", "@folder", "allow them where examples in DIR keep their class",
     TEXT(calibrate)},
    {"agreement", "R", "@none", "least share of examples that keep it; default 0.99", CLI_REAL, 0,
     0, 1, "agreement"},
    {"episodes", "N", "@none", "episodes of q-learning, paths of rs", CLI_WHOLE, 0, 1, 1e6,
     "episodes"},
    {"seed", "N", "@none", "random seed of q-learning and rs", CLI_WHOLE, 0, 1, 9e15, "seed"},
    {"ms", "N", "@none", "time to measure each execution place", CLI_WHOLE, 0, 1, 600000, "ms"},
    {"pareto", NULL, NULL, "change nothing; list the best choices", CLI_FLAG,
     .parameter = "pareto"},
    {"front", NULL, NULL, "with --calibrate: list the best in time, accuracy and memory", CLI_FLAG,
     AT(front)},
    {"at-most-lost", "PERCENT", "@none",
     "serve the fastest of them that keeps all classes but so many", TEXT(lost)},
    {"page", "FILE", "@file", "with charts of what is listed in the page FILE.html", TEXT(page)},
    {0}};
static const struct cli_option QUANTIZE[] = {
    {THE_MODEL, .parameter = "model"},
    {"calibrate", "DIR", "@folder", "examples: pictures or raw float32", TEXT(calibrate)},
    {"min-max", NULL, NULL, "find ranges by extremes", .parameter = "method"},
    {"kl", NULL, NULL, "find ranges by Kullback-Leibler divergence", .parameter = "method"},
    {"symmetric", NULL, NULL, "give activations no zero point", CLI_FLAG, .parameter = "symmetric"},
    {"keep", "OP", "@none", "leave this operator f32", CLI_TEXTS, .parameter = "keep",
     .many = true},
    {"bound", "PERCENT", "@none", "least share of examples that keep their class; default 98",
     CLI_REAL, AT(bound), 0, 100},
    {"ms", "N", "@none", "time to measure each model on each execution place", CLI_WHOLE, 0, 0,
     600000, "ms"},
    {"write", "FILE", "@file", "write the ranges to FILE, for the configuration", TEXT(write)},
    {"off", NULL, NULL, "serve the f32 model again", CLI_FLAG, .parameter = "off"},
    {0}};
static const struct cli_option BOARD[] = {
    {"state-dir", "DIR", "@folder", "piped-link's state; default /var/lib/piped-link",
     TEXT(state_dir)},
    {"runtime-dir", "DIR", "@folder", "list: piped-link's reports; default /run/piped-link",
     TEXT(runtime_dir)},
    {"replace", NULL, NULL, "key: make a new pair in place of the present one", FLAG(replace)},
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
    {"models", NULL, "[list|fetch [NAME]|inspect FILE|load NAME [FILE]|set NAME|unload NAME]",
     "list, load, unload and fetch models; look at a file first", MODELS, MODELS_WORDS,
     .group = "change"},
    {"plan", NULL, "[show | set PLAN | auto | front | explain | mix | export|import FILE]",
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

int ctl_print_help(const struct cli_command *command)
{
    cli_print_help(stdout, &ctl_program, command);
    if (command->options == RETUNE) {
        static const char *const searches[][2] = {SEARCH_HELP};

        puts("\nsearches:");
        for (size_t i = 0; searches[i][0]; i++) {
            cli_print_entry(stdout, searches[i][0], searches[i][1]);
        }
    }
    return 0;
}
