/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_run - runs stored cases, each on every way of case.c
 *
 *     conformance_run CASES
 *
 * CASES has one case a line, fields separated by tabs: name=, model=, in= and out= (repeated, in
 * graph order), rtol=, atol=, max_tol=, ties=1, top=1, ways=, and for an in=*.ppm: bgr=,
 * mean=a,b,c, std=. For each line one line is printed: pass, FAIL or unsupported, the name, and
 * why. Cases run in child processes: a crash or a hang fails that case alone. Exit: 0 if no case
 * failed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "kernels/common/cpu.h"
#include "tests/conformance/case.h"
#include "tests/conformance/tensor_file.h"

#define CASE_SECONDS 120u

/* Splits @line in place. Return: false for an unknown field or a missing one. */
static bool parse(char *line, struct conformance_case *c)
{
    char *save = NULL;

    *c = (struct conformance_case){.rtol = 1e-3, .atol = 1e-7, .std = 1};
    for (char *f = strtok_r(line, "\t", &save); f; f = strtok_r(NULL, "\t", &save)) {
        char *v = strchr(f, '=');

        if (!v) {
            return false;
        }
        *v++ = '\0';
        if (strcmp(f, "name") == 0) {
            c->name = v;
        } else if (strcmp(f, "model") == 0) {
            c->model = v;
        } else if (strcmp(f, "in") == 0 && c->input_count < CASE_FILES_MAX) {
            c->inputs[c->input_count++] = v;
        } else if (strcmp(f, "out") == 0 && c->output_count < CASE_FILES_MAX) {
            c->outputs[c->output_count++] = v;
        } else if (strcmp(f, "ways") == 0) {
            c->ways = v;
        } else if (strcmp(f, "shapes") == 0) {
            c->shapes = v;
        } else if (strcmp(f, "rtol") == 0) {
            c->rtol = strtod(v, NULL);
        } else if (strcmp(f, "atol") == 0) {
            c->atol = strtod(v, NULL);
        } else if (strcmp(f, "max_tol") == 0) {
            c->max_tol = strtod(v, NULL);
        } else if (strcmp(f, "ties") == 0) {
            c->ties = atoi(v) != 0;
        } else if (strcmp(f, "top") == 0) {
            c->top = atoi(v) != 0;
        } else if (strcmp(f, "bgr") == 0) {
            c->bgr = atoi(v);
        } else if (strcmp(f, "std") == 0) {
            c->std = strtof(v, NULL);
        } else if (strcmp(f, "mean") != 0 ||
                   sscanf(v, "%f,%f,%f", &c->mean[0], &c->mean[1], &c->mean[2]) != 3) {
            return false;
        }
    }
    return c->name && c->model && c->output_count;
}

/* What a child tells about its work; shared memory, one writer. */
struct progress {
    volatile size_t next; /* the case in work */
    volatile size_t passed, failed, unsupported;
};

static void report(struct progress *p, enum verdict v, const char *name, const char *text)
{
    static const char *const words[] = {"pass", "FAIL", "unsupported"};

    p->passed += v == CASE_PASS;
    p->failed += v == CASE_FAIL;
    p->unsupported += v == CASE_UNSUPPORTED;
    printf("%s\t%s\t%s\n", words[v], name, text);
    fflush(stdout);
}

static void child(const struct conformance_case *cases, size_t count, struct progress *p)
{
    while (p->next < count) {
        char text[1024] = "";

        alarm(CASE_SECONDS);
        report(p, case_run(&cases[p->next], text), cases[p->next].name, text);
        alarm(0);
        p->next++;
    }
}

static char **split_lines(char *text, size_t *ret_count)
{
    size_t count = 0, room = 0;
    char **lines = NULL, *save = NULL;

    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        if (count == room) {
            room = room ? room * 2 : 64;
            lines = realloc(lines, room * sizeof(*lines));
            if (!lines) {
                abort();
            }
        }
        lines[count++] = l;
    }
    *ret_count = count;
    return lines;
}

int main(int argc, char **argv)
{
    size_t bytes = 0, count = 0;
    char error[KRN_CPU_TEXT_MAX];
    base_autofree uint8_t *text = argc == 2 ? read_file(argv[1], &bytes) : NULL;

    if (!text) {
        fprintf(stderr, "usage: conformance_run CASES\n");
        return 2;
    }
    if (krn_cpu_check(error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    text[bytes] = 0;
    base_autofree char **lines = split_lines((char *)text, &count);
    base_autofree struct conformance_case *cases = calloc(count + 1, sizeof(*cases));
    struct progress *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!cases || p == MAP_FAILED) {
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        if (!parse(lines[i], &cases[i])) {
            fprintf(stderr, "line %zu is not a case\n", i + 1);
            return 2;
        }
    }
    while (p->next < count) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
            child(cases, count, p);
            exit(0); /* not _exit(): the leak checker runs at exit */
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            perror("fork");
            return 2;
        }
        if (p->next < count) {
            char why[64];

            snprintf(why, sizeof(why), WIFSIGNALED(status) ? "killed by signal %d" : "exit %d",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            report(p, CASE_FAIL, cases[p->next].name, why);
            p->next++;
        }
    }
    printf("total\t%zu passed, %zu failed, %zu unsupported\n", p->passed, p->failed,
           p->unsupported);
    return p->failed ? 1 : 0;
}
