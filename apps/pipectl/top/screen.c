/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: a screen of cells. */
#include <math.h>

#include "apps/pipectl/top/top.h"
#include "base/shown_text.h"

int top_screen_init(struct top_screen *s, size_t rows, size_t columns, bool ascii)
{
    *s = (struct top_screen){.rows = rows, .columns = columns, .ascii = ascii};
    s->cells = calloc(base_max(rows * columns, (size_t)1), sizeof(*s->cells));
    if (!s->cells) {
        return -ENOMEM;
    }
    top_screen_clear(s);
    return 0;
}

void top_screen_deinit(struct top_screen *s)
{
    free(s->cells);
    *s = TOP_SCREEN_NULL;
}

void top_screen_clear(struct top_screen *s)
{
    for (size_t i = 0; i < s->rows * s->columns; i++) {
        s->cells[i] = (struct top_cell){L' ', TOP_PLAIN};
    }
    s->row = s->column = 0;
}

void top_screen_copy(struct top_screen *s, size_t to, const struct top_screen *from, size_t first,
                     size_t count)
{
    if (to < s->rows && first < from->rows) {
        count = base_min(count, base_min(s->rows - to, from->rows - first));
        memcpy(s->cells + to * s->columns, from->cells + first * s->columns,
               count * s->columns * sizeof(*s->cells));
    }
}

/* Columns up to the last one of a row that is not blank. */
static size_t used_columns(const struct top_screen *s, size_t row)
{
    size_t n = s->columns;

    while (n > 0 && s->cells[row * s->columns + n - 1].c == L' ') {
        n--;
    }
    return n;
}

size_t top_screen_used(const struct top_screen *s)
{
    size_t n = s->rows;

    while (n > 0 && used_columns(s, n - 1) == 0) {
        n--;
    }
    return n;
}

/* In UTF-8, whatever the locale says: without it, cells hold ASCII alone. */
static void print_character(wchar_t c, FILE *to)
{
    unsigned u = (unsigned)c;

    if (u < 0x80) {
        fputc((int)u, to);
    } else if (u < 0x800) {
        fprintf(to, "%c%c", 0xc0 | u >> 6, 0x80 | (u & 63));
    } else if (u < 0x10000) {
        fprintf(to, "%c%c%c", 0xe0 | u >> 12, 0x80 | (u >> 6 & 63), 0x80 | (u & 63));
    } else {
        fprintf(to, "%c%c%c%c", 0xf0 | u >> 18, 0x80 | (u >> 12 & 63), 0x80 | (u >> 6 & 63),
                0x80 | (u & 63));
    }
}

void top_screen_print(const struct top_screen *s, FILE *to)
{
    for (size_t row = 0, rows = top_screen_used(s); row < rows; row++) {
        for (size_t i = 0, n = used_columns(s, row); i < n; i++) {
            wchar_t c = s->cells[row * s->columns + i].c;

            if (c) {
                print_character(c, to);
            }
        }
        fputc('\n', to);
    }
}

/* The next character of UTF-8 text and its bytes; a wrong byte is one character, 0xfffd. */
static wchar_t decode(const char *text, size_t *ret_bytes)
{
    uint32_t c;
    size_t n = shown_decode(text, strlen(text), &c);

    *ret_bytes = n ? n : 1;
    return n ? (wchar_t)c : 0xfffd;
}

/* What is shown of @c, and its cells. */
static wchar_t shown(const struct top_screen *s, wchar_t c, size_t *ret_width)
{
    int width = c >= 0x20 && c < 0x7f                                  ? 1
                : shown_hidden((uint32_t)c) || s->ascii || c == 0xfffd ? 0
                                                                       : wcwidth(c);

    *ret_width = width > 0 ? (size_t)width : 1;
    return width > 0 ? c : L'?';
}

static void put_character(struct top_screen *s, enum top_look look, wchar_t c, size_t width)
{
    struct top_cell *cell;

    if (s->row >= s->rows || s->column + width > s->columns) {
        s->column = s->columns;
        return;
    }
    cell = s->cells + s->row * s->columns + s->column;
    cell[0] = (struct top_cell){c, look};
    if (width == 2) {
        cell[1] = (struct top_cell){0, look};
    }
    s->column += width;
}

/* Marks a row whose text goes on beyond the screen, as fields are marked. */
static void mark_cut(struct top_screen *s)
{
    struct top_cell *last = s->cells + s->row * s->columns + s->columns - 1;

    if (s->columns > 1 && last->c == 0) { /* the second half of a wide character */
        last[-1].c = L' ';
    }
    last->c = L'~';
    s->column = s->columns;
}

/* Puts as much of @text as @most cells and the row hold. Return: the cells. */
static size_t put_text(struct top_screen *s, enum top_look look, const char *text, size_t most)
{
    size_t used = 0, bytes, width;

    for (; *text; text += bytes) {
        wchar_t c = shown(s, decode(text, &bytes), &width);

        if (used + width > most) {
            break;
        }
        if (s->row < s->rows && s->columns > 0 && s->column + width > s->columns &&
            text[strspn(text, " ")]) {
            mark_cut(s);
            break;
        }
        put_character(s, look, c, width);
        used += width;
    }
    return used;
}

size_t top_width(const struct top_screen *s, const char *text)
{
    size_t used = 0, bytes, width;

    for (; *text; text += bytes) {
        shown(s, decode(text, &bytes), &width);
        used += width;
    }
    return used;
}

void top_line(struct top_screen *s)
{
    s->row++;
    s->column = 0;
}

void top_put(struct top_screen *s, enum top_look look, const char *format, ...)
{
    base_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
    }
    va_end(args);
    if (text) {
        put_text(s, look, text, SIZE_MAX);
    }
}

static void put_blanks(struct top_screen *s, enum top_look look, size_t count)
{
    while (count-- > 0) {
        put_character(s, look, L' ', 1);
    }
}

void top_put_field(struct top_screen *s, enum top_look look, const char *text, size_t width,
                   bool right)
{
    enum top_look blanks = look == TOP_TITLE ? look : TOP_PLAIN; /* it is underlined */
    size_t all = top_width(s, text), used;

    if (right && all < width) {
        put_blanks(s, blanks, width - all);
    }
    used = put_text(s, look, text, all > width ? width - (width > 0) : width);
    if (all > width && width > 0) {
        put_character(s, look, L'~', 1);
        used++;
    }
    if (used < width && (!right || all > width)) {
        put_blanks(s, blanks, width - used);
    }
}

void top_put_bar(struct top_screen *s, enum top_look look, double share, size_t width)
{
    size_t parts = s->ascii ? 1 : 8;
    double clipped = isnan(share) ? 0 : base_min(base_max(share, 0.0), 1.0);
    size_t filled = (size_t)lround(clipped * (double)(width * parts));

    for (size_t i = 0; i < width; i++) {
        size_t here = filled > i * parts ? base_min(filled - i * parts, parts) : 0;

        /* U+2588 is a full block; U+2589 to U+258F are seven to one eighths of it. */
        put_character(s, look, here == 0 ? L' ' : s->ascii ? L'#' : (wchar_t)(0x2590 - here), 1);
    }
}

void top_put_curve(struct top_screen *s, enum top_look look, const double *values, size_t count,
                   double most)
{
    static const wchar_t ascii[] = L"_.:-=+*#";

    for (size_t i = 0; i < count; i++) {
        double share = most > 0 ? base_min(values[i] / most, 1.0) : 0;
        size_t level = isnan(values[i]) ? 0 : base_min((size_t)lround(share * 8), (size_t)8);

        /* U+2581 to U+2588 are one to eight eighths, from below. 0 frames are a line, too. */
        put_character(s, look,
                      isnan(values[i]) ? L' '
                      : s->ascii       ? ascii[base_max(level, (size_t)1) - 1]
                                       : (wchar_t)(0x2580 + base_max(level, (size_t)1)),
                      1);
    }
}
