/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: which programs keep the cores busy, from /proc. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/pipectl/doctor/sample.h"

#define NAMED 3u
#define LEAST 0.03 /* of a core */

static void close_file(FILE **f)
{
    if (*f) {
        fclose(*f);
    }
}

/* Reads /proc/PID/stat: "pid (name) state ... utime stime"; the name may have any character. */
static bool read_process(const char *pid, char name[32], double *ret_cpu_s)
{
    base_cleanup(close_file) FILE *f = NULL;
    char path[64], line[1024], *open, *close;
    unsigned long user, kernel;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    f = fopen(path, "re");
    if (!f || !fgets(line, sizeof(line), f)) {
        return false;
    }
    open = strchr(line, '(');
    close = strrchr(line, ')');
    if (!open || !close || close < open ||
        sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) !=
            2) {
        return false;
    }
    snprintf(name, 32, "%.*s", (int)base_min((ptrdiff_t)31, close - open - 1), open + 1);
    for (char *at = name; *at; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    *ret_cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal ... */
static void read_cpus(json_t *to)
{
    base_cleanup(close_file) FILE *f = fopen("/proc/stat", "re");
    double t[8], all = 0; /* ticks */

    if (!f || fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4],
                     &t[5], &t[6], &t[7]) != 8) {
        return;
    }
    for (size_t i = 0; i < base_array_count(t); i++) {
        all += t[i];
    }
    json_object_set_new(to, "steal_s", json_real(t[7] / (double)sysconf(_SC_CLK_TCK)));
    json_object_set_new(to, "all_s", json_real(all / (double)sysconf(_SC_CLK_TCK)));
}

json_t *doctor_programs(void)
{
    json_t *all = json_object(), *processes = json_object();
    DIR *dir = opendir("/proc");
    const struct dirent *e;

    while (dir && (e = readdir(dir))) {
        double cpu_s;
        char name[32];

        if (e->d_name[strspn(e->d_name, "0123456789")] == '\0' &&
            read_process(e->d_name, name, &cpu_s)) {
            json_object_set_new(processes, e->d_name,
                                json_pack("{s:s, s:f}", "name", name, "cpu_s", cpu_s));
        }
    }
    if (dir) {
        closedir(dir);
    }
    json_object_set_new(all, "processes", processes);
    read_cpus(all);
    return all;
}

/* Keeps @list in order, most first, and short. */
static void insert(json_t *list, json_t *program)
{
    size_t at = json_array_size(list);

    while (at > 0 && ctl_real(json_array_get(list, at - 1), "cores") < ctl_real(program, "cores")) {
        at--;
    }
    json_array_insert_new(list, at, program);
    if (json_array_size(list) > NAMED) {
        json_array_remove(list, NAMED);
    }
}

json_t *doctor_programs_between(const json_t *before, const json_t *after, double seconds,
                                json_int_t daemon_pid)
{
    const json_t *old = json_object_get(before, "processes");
    json_t *list = json_array(), *now;
    const char *pid;

    json_object_foreach(json_object_get(after, "processes"), pid, now)
    {
        double cores =
            (ctl_real(now, "cpu_s") - ctl_real(json_object_get(old, pid), "cpu_s")) / seconds;
        long long number = atoll(pid);

        if (seconds > 0 && cores >= LEAST && number != getpid() && number != daemon_pid) {
            insert(list, json_pack("{s:I, s:s, s:f}", "pid", (json_int_t)number, "name",
                                   ctl_text(now, "name"), "cores", cores));
        }
    }
    return list;
}
