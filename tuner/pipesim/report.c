/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/report.h"

#include "tuner/pipesim/subject.h"

/* What the page has, in its order. */
static const struct section {
    const char *id, *title;
    int (*write)(struct psim_report *);
} SECTIONS[] = {
    {"convergence", "Convergence (Shisha, figure 4)", psim_report_convergence},
    {"quality", "Quality (Shisha, figure 5)", psim_report_quality},
    {"seeds", "Shisha's seed against random ones (figure 6)", psim_report_seeds},
    {"heuristics", "Heuristics of Shisha (figures 7 and 8)", psim_report_heuristics},
    {"alpha", "Alpha (Shisha, figure 9)", psim_report_alpha},
    {"top-ten", "The best balanced cuts (Pipe-search, figure 1)", psim_report_top_ten},
    {"exploration", "Exploration of Pipe-search (figure 3)", psim_report_timeline},
    {"balance", "Seed and end (Pipe-search, figure 4)", psim_report_balance},
    {"hints", "Hints (Pipe-search, table 5)", psim_report_hints},
    {"governors", "Governor settings (Pipe-search, table 6)", psim_report_governors},
    {"ranks", "Ranks of the optima (Pipe-search, table 7)", psim_report_ranks},
    {"big-and-little", "Big and little together (Pipe-it, tables III to VIII)",
     psim_report_pipe_it},
    {"splits", "Split points (Pipe-it, figures 8 and 9)", psim_report_splits},
    {"speed-up", "Speed-up of a team (Pipe-it, figure 12)", psim_report_speed_up},
    {"boards", "Searches over boards (hierarchical DSE, figure 4)", psim_report_dse},
    {"latency", "Throughput against latency", psim_report_front},
};

static void write_contents(FILE *to)
{
    json_t *contents = json_array();

    for (size_t i = 0; i < base_array_count(SECTIONS); i++) {
        json_array_append_new(
            contents, json_pack("{s:s, s:s}", "id", SECTIONS[i].id, "title", SECTIONS[i].title));
    }
    page_contents(to, contents);
}

static int write_sections(struct psim_report *r)
{
    int error = 0;

    for (size_t i = 0; i < base_array_count(SECTIONS) && !error; i++) {
        page_fold_begin(r->to, SECTIONS[i].id, true, SECTIONS[i].title);
        error = SECTIONS[i].write(r);
        page_fold_end(r->to);
    }
    return error;
}

static int write_page(const char *path, const char *page)
{
    FILE *to = fopen(path, "we");

    if (!to) {
        return -errno;
    }
    fputs(page, to);
    return fclose(to) == 0 ? 0 : -errno;
}

static int report(struct psim_report *r, const char *path)
{
    base_autofree char *page = NULL;
    size_t bytes;
    int error;

    r->to = open_memstream(&page, &bytes);
    if (!r->to) {
        return -errno;
    }
    page_begin(r->to, "Searches for pipelines, side by side");
    page_paragraph(r->to, NULL,
                   "Every figure on this page was computed by the run that wrote it: the searches "
                   "are those the daemon runs, the machines are descriptions (pipesim list), a "
                   "trial fills the pipeline and then takes ten frames. Times count the trials and "
                   "what the search itself took, a database included. Point at a mark to read it.");
    if (!page_has_charts()) {
        page_paragraph(r->to, "warn", "%s.", PAGE_NO_CHARTS);
    }
    write_contents(r->to);
    error = write_sections(r);
    page_end(r->to);
    if (fclose(r->to) != 0 && !error) {
        error = -errno;
    }
    if (!error && (error = write_page(path, page)) != 0) {
        snprintf(r->error, sizeof(r->error), "cannot write %.200s: %s", path, strerror(-error));
    }
    return error;
}

int psim_cmd_report(int argc, char **argv)
{
    struct psim_options o = {.seed = 1};
    struct psim_report r = {0};
    int error, code = psim_options(argc, argv, &o);

    if (code) {
        return code;
    }
    if (optind != argc - 1) {
        return psim_usage("report", "give one file, FILE.html");
    }
    r.seed = o.seed;
    error = report(&r, argv[optind]);
    if (error) {
        return psim_fail("report: %s", r.error[0] ? r.error : strerror(-error));
    }
    shown_printf("wrote %s\n", argv[optind]);
    if (!page_has_charts()) {
        psim_say("report: %s", PAGE_NO_CHARTS);
    }
    return PSIM_DONE;
}
