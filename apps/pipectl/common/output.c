/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: prints JSON, tables and text. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "base/cli/cli.h"
#include "base/shown_text.h"

void ctl_print_json(const json_t *v)
{
    json_text_print(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY);
    putchar('\n');
}

void ctl_print_new(json_t *v)
{
    ctl_print_json(v);
    json_decref(v);
}

void ctl_print_note(const json_t *verdict)
{
    const char *note = json_text_of(verdict, "note");

    if (*note) {
        shown_printf("  %s\n", note);
    }
}

void ctl_print_wrapped(const char *text, int indent)
{
    cli_print_wrapped(stdout, text, indent, indent);
}

void ctl_print_under(const char *lead, int indent, const char *format, ...)
{
    base_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
    }
    va_end(args);
    shown_printf("%s", lead);
    ctl_print_wrapped(text ? text : "", indent);
}

bool ctl_wishes_text(const json_t *w, char ret[CTL_WISHES_BYTES])
{
    static const struct {
        const char *key, *format;
        double none, times;
    } rows[] = {
        {"rate", "%.6g frames/s", 0, 1},
        {"deadline_ms", "each due within %.6g ms", 0, 1},
        {"class", "class %g", 0, 1},
        {"weight", "weight %g", 1, 1},
        {"max_share", "at most %.4g %% of the cores' time", 1, 100},
    };

    *ret = '\0';
    for (size_t i = 0; i < base_array_count(rows); i++) {
        double x = ctl_value(w, rows[i].key);

        if (isfinite(x) && x != rows[i].none) {
            base_append(ret, CTL_WISHES_BYTES, "%s", *ret ? ", " : "");
            base_append(ret, CTL_WISHES_BYTES, rows[i].format, x * rows[i].times);
        }
    }
    return *ret != '\0';
}

const char *ctl_text(const json_t *object, const char *path)
{
    const char *s = json_string_value(json_text_at(object, path));

    return s ? s : "-";
}

struct ctl_words ctl_line(const json_t *object, const char *path)
{
    struct ctl_words w;

    snprintf(w.text, sizeof(w.text), "%s", ctl_text(object, path));
    shown_clean(w.text, "");
    return w;
}

double ctl_real(const json_t *object, const char *path)
{
    return json_number_value(json_text_at(object, path));
}

double ctl_value(const json_t *object, const char *path)
{
    return ctl_has(object, path) ? ctl_real(object, path) : NAN;
}

bool ctl_has(const json_t *object, const char *path)
{
    return json_is_number(json_text_at(object, path));
}

bool ctl_is(const json_t *object, const char *path)
{
    return json_is_true(json_text_at(object, path));
}

struct ctl_word ctl_format(double value, const char *format)
{
    struct ctl_word w = {"-"};

    if (isfinite(value)) {
        snprintf(w.text, sizeof(w.text), format, value);
    }
    return w;
}

struct ctl_word ctl_known(const json_t *object, const char *path, const char *format)
{
    return ctl_format(ctl_value(object, path), format);
}

struct ctl_word ctl_cpus(const char *before, const json_t *cpus)
{
    struct ctl_word w = {""};
    size_t count = json_array_size(cpus);

    for (size_t i = 0; i < count; i++) {
        json_int_t first = json_integer_value(json_array_get(cpus, i)), last = first;

        while (i + 1 < count && json_integer_value(json_array_get(cpus, i + 1)) == last + 1) {
            last++;
            i++;
        }
        base_append(w.text, sizeof(w.text), last > first ? "%s%d-%d" : "%s%d",
                    *w.text ? "," : before, (int)first, (int)last);
    }
    return count ? w : (struct ctl_word){"-"};
}

struct ctl_words ctl_any(const json_t *object, const char *path)
{
    struct ctl_words w;

    cli_any(json_text_at(object, path), w.text, sizeof(w.text));
    return w;
}

json_t *ctl_sorted(const json_t *list, const char *path)
{
    json_t *sorted = json_array();

    json_text_each(list, i, one) {
        double value = ctl_value(one, path);
        size_t at = json_array_size(sorted);

        while (at > 0 && !isnan(value) &&
               !(ctl_value(json_array_get(sorted, at - 1), path) >= value)) {
            at--;
        }
        json_array_insert(sorted, at, one);
    }
    return sorted;
}

#define MOST_LIMITING 0.8 /* of the largest, so they limit about equally */
#define NOTHING 0.005     /* "0 %" */

/* Adds " and NAME", or NAME if it is the first. */
static void add_name(struct ctl_words *w, const char *name)
{
    base_append(w->text, sizeof(w->text), "%s%s", *w->text ? " and " : "", name);
}

struct ctl_words ctl_mix_limits(const json_t *mix)
{
    const json_t *cores = json_object_get(mix, "cores");
    struct ctl_words w = {""};
    double most = 0;

    json_text_each(cores, i, of) {
        most = base_max(most, ctl_real(of, "limits"));
    }
    json_text_each(cores, i, of) {
        if (json_array_size(cores) > 1 && most > 0 &&
            ctl_real(of, "limits") >= MOST_LIMITING * most) {
            add_name(&w, ctl_text(of, "ep"));
        }
    }
    return w;
}

struct ctl_words ctl_mix_reaches(const json_t *mix)
{
    const char *objective = ctl_text(mix, "objective");
    double served = ctl_real(mix, "served_of_bound");
    size_t count = json_array_size(json_object_get(mix, "models"));
    struct ctl_words limits = ctl_mix_limits(mix), w = {""};

    base_append(w.text, sizeof(w.text),
                "One plan for %zu model%s %s %.1f %% of what these cores could ever do%s", count,
                base_plural(count), served > 0 ? "reaches" : "could reach",
                100 * (served > 0 ? served : ctl_real(mix, "of_bound")),
                strcmp(objective, "energy") == 0    ? " for the least energy"
                : strcmp(objective, "soonest") == 0 ? " for the least latency"
                                                    : "");
    if (*limits.text) {
        base_append(w.text, sizeof(w.text), "; %s limit%s it", limits.text,
                    strstr(limits.text, " and ") ? "" : "s");
    }
    base_append(w.text, sizeof(w.text), ".");
    return w;
}

struct ctl_words ctl_mix_keeps(const json_t *mix)
{
    const json_t *refused = json_object_get(mix, "refused");
    double part = ctl_real(mix, "of_wishes");
    struct ctl_words w = {""};

    if (ctl_is(mix, "rates") && part >= CTL_ALL) {
        base_append(w.text, sizeof(w.text), "All rates can be kept. ");
    } else if (ctl_is(mix, "rates")) {
        base_append(w.text, sizeof(w.text), "Not all rates can be kept: %.1f %% of each can. ",
                    100 * part);
    }
    if (json_is_object(refused)) {
        base_append(w.text, sizeof(w.text), "%s", ctl_text(refused, "text"));
    } else if (ctl_is(mix, "deadlines")) {
        base_append(w.text, sizeof(w.text), "All deadlines can be kept%s.",
                    ctl_is(mix, "serves") ? "" : " by one plan for all models");
    }
    return w;
}

struct ctl_words ctl_mix_gives(const json_t *row)
{
    const json_t *share, *busy = json_object_get(row, "busy");
    double bound_ms = ctl_real(row, "served_bound_ms");
    struct ctl_words cores = {""}, w = {""};
    char part[160];
    const char *ep;

    json_object_foreach((json_t *)(uintptr_t)busy, ep, share)
    {
        if (json_number_value(share) >= NOTHING) {
            snprintf(part, sizeof(part), "%.0f %% of %s", 100 * json_number_value(share), ep);
            add_name(&cores, part);
        }
    }
    base_append(w.text, sizeof(w.text), "%.1f frames/s", ctl_real(row, "rate"));
    if (ctl_has(row, "served_bound_ms")) {
        base_append(w.text, sizeof(w.text), ", each within %.*f ms", bound_ms < 1 ? 3 : 1,
                    bound_ms);
    }
    if (*cores.text) {
        base_append(w.text, sizeof(w.text), ", with %s", cores.text);
    }
    return w;
}

struct ctl_words ctl_places(const json_t *board)
{
    struct ctl_words w = {""};

    json_text_each(json_object_get(board, "eps"), i, ep) {
        base_append(w.text, sizeof(w.text), "%s%s x%.0f", i ? ", " : "", ctl_text(ep, "name"),
                    ctl_real(ep, "cores"));
    }
    return w;
}
