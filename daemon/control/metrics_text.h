/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/metrics_text.h - Prometheus' text format, for the files that write metrics
 *
 * @name: of a metric, without "piped_". @type: "counter", "gauge", "summary" or "histogram". Values
 * have 15 digits. Threads: the loop thread.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct dmn_control;

/** dmn_metric_head() - begins a metric; its rows follow. */
static inline void dmn_metric_head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP piped_%s %s\n# TYPE piped_%s %s\n", name, help, name, type);
}

/** dmn_metric_row() - writes a row. @labels: without braces; a format. */
__attribute__((format(printf, 4, 5))) static inline void
dmn_metric_row(FILE *to, const char *name, double value, const char *labels, ...)
{
    char text[512];
    va_list args;

    va_start(args, labels);
    vsnprintf(text, sizeof(text), labels, args);
    va_end(args);
    fprintf(to, "piped_%s{%s} %.15g\n", name, text, value);
}

/** dmn_metric() - writes a metric that has one row, without labels. */
static inline void dmn_metric(FILE *to, const char *name, const char *type, const char *help,
                              double value)
{
    dmn_metric_head(to, name, type, help);
    fprintf(to, "piped_%s %.15g\n", name, value);
}

/** dmn_metric_label() - writes text that is not ours as the value of a label. @bytes: at least 2;
 * what has no room is left out. Return: @ret. */
static inline const char *dmn_metric_label(const char *value, char *ret, size_t bytes)
{
    size_t used = 0;

    for (; *value && used + 3 < bytes; value++) {
        if (*value == '"' || *value == '\\' || *value == '\n') {
            ret[used++] = '\\';
        }
        ret[used++] = *value == '\n' ? 'n' : *value;
    }
    ret[used] = '\0';
    return ret;
}

/** dmn_boards_metrics() - of boards and routes. */
void dmn_boards_metrics(FILE *to, const struct dmn_control *control);
/** dmn_sensors_metrics() - of the machine; what is unknown has none. */
void dmn_sensors_metrics(FILE *to, const struct dmn_control *control);
