/* SPDX-License-Identifier: Apache-2.0 */
/* What programs say, on terminals and in the journal. */
#include "base/cli/cli.h"

#include "base/shown_text.h"

void shown_vfprintf(FILE *to, const char *format, va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, format, args) >= 0) {
        shown_clean(text, "\n\t");
        fputs(text, to);
        free(text);
    }
}

void shown_text_print(const char *text)
{
    char *copy = strdup(text);

    if (copy) {
        shown_clean(copy, "");
        fputs(copy, stdout);
        free(copy);
    }
}

void shown_vsay(const char *program, const char *format, va_list args)
{
    char text[SHOWN_LINE_MAX];

    vsnprintf(text, sizeof(text), format, args);
    shown_clean(text, "");
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, text);
}

void shown_begin(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) { /* it is the least number that is free */
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

int shown_end(const char *program, int code)
{
    bool lost = ferror(stdout) != 0;

    errno = 0;
    if ((fflush(stdout) != 0 || lost) && code == 0) {
        shown_say(program, "cannot write the result%s%s", errno ? ": " : "",
                  errno ? strerror(errno) : "");
        code = 1;
    }
    return code;
}

void shown_fprintf(FILE *to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vfprintf(to, format, args);
    va_end(args);
}

void shown_printf(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vfprintf(stdout, format, args);
    va_end(args);
}

void shown_say(const char *program, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vsay(program, format, args);
    va_end(args);
}

int shown_refuse(int code, const char *program, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    shown_vsay(program, format, args);
    va_end(args);
    return code;
}
