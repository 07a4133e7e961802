/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/report.h"

#include <string.h>

#include "base.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

static int sections(struct psim_report *r)
{
    static int (*const ALL[])(struct psim_report *) = {
        psim_report_convergence, psim_report_quality,  psim_report_heuristics,
        psim_report_alpha,       psim_report_timeline, psim_report_governors,
        psim_report_boards,      psim_report_dse,      psim_report_front};
    int error = 0;

    for (size_t i = 0; i < base_array_count(ALL) && !error; i++) {
        error = ALL[i](r);
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
    error = sections(r);
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
    struct psim_report r = {.seed = 1};
    int option, error;

    while ((option = psim_option(argc, argv)) != -1) {
        char *end = NULL;

        if (option == 'h') {
            psim_help(stdout, "report");
            return PSIM_DONE;
        }
        if (option == 's') {
            r.seed = strtoull(optarg, &end, 10);
        }
        if (option == '?' || option == ':') {
            return psim_bad_option("report", option, argv);
        }
        if (end && *end) {
            return psim_usage("report", "'%s' is not a number", optarg);
        }
    }
    if (optind != argc - 1) {
        return psim_usage("report", "give one file, FILE.html");
    }
    error = report(&r, argv[optind]);
    if (error) {
        fprintf(stderr, "pipesim: report: %s\n", r.error[0] ? r.error : strerror(-error));
        return 1;
    }
    printf("wrote %s\n", argv[optind]);
    if (!page_has_charts()) {
        fprintf(stderr, "pipesim: report: %s\n", PAGE_NO_CHARTS);
    }
    return 0;
}
