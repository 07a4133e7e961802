/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/report.h"

#include <string.h>

#include "base.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

static void head(FILE *to)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
          "<title>pipesim report</title>\n<style>",
          to);
    psim_svg_style(to);
    fputs("body{background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif;"
          "max-width:56rem;margin:2rem auto;padding:0 1rem}"
          "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}p{max-width:44rem}"
          "figure{margin:1rem "
          "0}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}"
          "th,td{padding:.25rem .6rem;border-bottom:1px solid var(--rule);text-align:left;"
          "white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
          "code{font:.85em ui-monospace,monospace}</style></head><body>\n"
          "<h1>Searches for pipelines, side by side</h1>\n"
          "<p>Every figure on this page was computed by the run that wrote it: the searches are "
          "those the daemon runs, the machines are descriptions (<code>pipesim list</code>), a "
          "trial fills the pipeline and then takes ten frames. Times count the trials and what "
          "the search itself took, a database included. Point at a mark to read it.</p>\n",
          to);
}

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

/* A chart of the page as a file of its own, with the style it needs. Return: 0 or -errno. */
static int write_figure(const char *folder, const char *id, size_t id_length, const char *svg,
                        size_t length)
{
    const char *open_end = memchr(svg, '>', length);
    char path[4096];
    FILE *to;

    snprintf(path, sizeof(path), "%s/%.*s.svg", folder, (int)id_length, id);
    to = fopen(path, "we");
    if (!to) {
        return -errno;
    }
    fprintf(to, "%.*s\n<style>", (int)(open_end + 1 - svg), svg);
    psim_svg_style(to);
    fputs("</style>", to);
    fwrite(open_end + 1, 1, length - (size_t)(open_end + 1 - svg), to);
    fputc('\n', to);
    return fclose(to) == 0 ? 0 : -errno;
}

static int write_figures(const char *page, const char *folder)
{
    static const char OPEN[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"";
    int error = 0;

    for (const char *svg = page; (svg = strstr(svg, OPEN)) != NULL && !error;) {
        const char *id = svg + sizeof(OPEN) - 1, *end = strstr(svg, "</svg>") + 6;

        error = write_figure(folder, id, strcspn(id, "\""), svg, (size_t)(end - svg));
        svg = end;
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

static int report(struct psim_report *r, const char *path, const char *figures)
{
    base_autofree char *page = NULL;
    size_t bytes;
    int error;

    r->to = open_memstream(&page, &bytes);
    if (!r->to) {
        return -errno;
    }
    head(r->to);
    error = sections(r);
    fputs("</body></html>\n", r->to);
    if (fclose(r->to) != 0 && !error) {
        error = -errno;
    }
    if (!error && (error = write_page(path, page)) != 0) {
        snprintf(r->error, sizeof(r->error), "cannot write %.200s: %s", path, strerror(-error));
    }
    if (!error && figures && (error = write_figures(page, figures)) != 0) {
        snprintf(r->error, sizeof(r->error), "%.200s: %s", figures, strerror(-error));
    }
    return error;
}

int psim_cmd_report(int argc, char **argv)
{
    const char *figures = NULL;
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
        } else if (option == 'f') {
            figures = optarg;
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
    error = report(&r, argv[optind], figures);
    if (error) {
        fprintf(stderr, "pipesim: report: %s\n", r.error[0] ? r.error : strerror(-error));
        return 1;
    }
    printf("wrote %s\n", argv[optind]);
    return 0;
}
