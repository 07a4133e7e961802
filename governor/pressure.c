/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "governor/pressure.h"

void gov_pressure_scan(struct gov_sensors *s)
{
    if (s->psi_cpu.path[0] == '\0') {
        gov_file_set(&s->files, &s->psi_cpu, "proc/pressure/cpu");
        gov_file_set(&s->files, &s->psi_memory, "proc/pressure/memory");
    }
}

void gov_pressure_close(struct gov_sensors *s)
{
    gov_file_close(&s->files, &s->psi_cpu);
    gov_file_close(&s->files, &s->psi_memory);
}

/* "12.34", always with a point, whatever the locale. Return: it, or NAN. */
static double parse_percent(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;

    if (whole < 1 || whole > 3 || part < 1 || part > 6) {
        return NAN;
    }
    double value = atoi(text), digit = 0.1;
    for (size_t i = 0; i < part; i++, digit /= 10) {
        value += digit * (text[whole + 1 + i] - '0');
    }
    return value <= 100 ? value : NAN;
}

/* Documentation/accounting/psi.rst: "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" */
static struct gov_psi read_psi(struct gov_sensors *s, struct gov_file *f)
{
    struct gov_psi psi = {NAN, GOV_UNKNOWN};
    char text[512], digits[24];

    if (gov_file_read(&s->files, f, text, sizeof(text)) < 0 || strncmp(text, "some ", 5) != 0) {
        return psi;
    }
    text[strcspn(text, "\n")] = '\0';
    const char *avg = strstr(text, " avg10="), *total = strstr(text, " total=");
    if (!avg || !total ||
        gov_line_parse(total + 7, strcspn(total + 7, " "), digits, sizeof(digits)) != 0 ||
        gov_u64_parse(digits, 0, GOV_UNKNOWN - 1, &psi.some_total_us) != 0) {
        return (struct gov_psi){NAN, GOV_UNKNOWN};
    }
    psi.some_avg10 = parse_percent(avg + 7);
    return psi;
}

void gov_pressure_sample(struct gov_sensors *s)
{
    s->now.psi_cpu = read_psi(s, &s->psi_cpu);
    s->now.psi_memory = read_psi(s, &s->psi_memory);
}
