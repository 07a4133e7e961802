/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: how a rule adds a finding. */
#include <math.h>
#include <stdarg.h>

#include "apps/pipectl/doctor/rule.h"
#include "base/base.h"
#include "base/shown_text.h"

const char *doctor_severity_name(enum doctor_severity s)
{
    static const char *const names[] = {
        [DOCTOR_FAILURE] = "failure", [DOCTOR_LOSS] = "loss", [DOCTOR_NOTE] = "note"};

    return names[s];
}

/* Names of programs and reasons come from anybody; a terminal must not obey them. */
static json_t *clean(const char *text)
{
    char out[DOCTOR_TEXT];

    snprintf(out, sizeof(out), "%s", text);
    shown_clean(out, "");
    return json_string(out);
}

void doctor_find(struct doctor *d, const char *model, double share, const char *advice,
                 const char *format, ...)
{
    char text[DOCTOR_TEXT];
    va_list args;

    if (share == 0) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_array_append_new(
        d->findings,
        json_pack("{s:s, s:s, s:s?, s:o, s:o, s:o}", "name", d->rule->name, "severity",
                  doctor_severity_name(d->rule->severity), "model", model, "share",
                  isnan(share) ? json_null() : json_real(base_max(base_min(share, 1.0), 0.0)),
                  "text", clean(text), "advice", clean(advice)));
}
