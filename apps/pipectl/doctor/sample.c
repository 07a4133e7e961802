/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl doctor: asks the daemon and the machine. */
#include <dirent.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/doctor/doctor.h"

#define EVENTS 200 /* newest of the history */
#define NAMED 3u
#define LEAST 0.03

/* ---- which programs keep the cores busy, from /proc ---- */

/* Reads /proc/PID/stat: "pid (name) state ... utime stime"; the name may have any character. */
static bool read_process(const char *pid, char name[32], double *ret_cpu_s)
{
    ctl_autoclose_file FILE *f = NULL;
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
    ctl_autoclose_file FILE *f = fopen("/proc/stat", "re");
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

/* CPU time of every process so far, in seconds, and the CPUs' own. Return: new: {processes: {PID:
 * {name, cpu_s}}, steal_s, all_s}. */
static json_t *programs_now(void)
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

/* Return: new: the programs that took most between two answers of programs_now(), without this
 * process and @daemon_pid: [{pid, name, cores}]. */
static json_t *programs_between(const json_t *before, const json_t *after, double seconds,
                                json_int_t daemon_pid)
{
    const json_t *old = json_object_get(before, "processes");
    json_auto_t *list = json_array();
    json_t *now, *most;
    const char *pid;

    json_object_foreach(json_object_get(after, "processes"), pid, now)
    {
        double cores =
            (ctl_real(now, "cpu_s") - ctl_real(json_object_get(old, pid), "cpu_s")) / seconds;
        long long number = atoll(pid);

        if (seconds > 0 && cores >= LEAST && number != getpid() && number != daemon_pid) {
            json_array_append_new(list, json_pack("{s:I, s:s, s:f}", "pid", (json_int_t)number,
                                                  "name", ctl_text(now, "name"), "cores", cores));
        }
    }
    most = ctl_sorted(list, "cores");
    while (json_array_size(most) > NAMED) {
        json_array_remove(most, NAMED);
    }
    return most;
}

/* ---- the daemon ---- */

/* Asks for one field of an answer, as @key of @to. @parameters: taken. Return: an exit code. */
static int ask(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
               json_t *to, const char *key)
{
    json_t *value;
    int rc = ctl_ask(ctl, method, parameters, field, &value);

    json_object_set_new(to, key, value);
    return rc;
}

/* Of each model of the newest status. */
static int ask_models(const struct ctl *ctl, json_t *sample)
{
    json_t *units = json_object(), *explanations = json_object();
    int rc = CTL_DONE;

    json_object_set_new(sample, "units", units);
    json_object_set_new(sample, "explanations", explanations);
    json_text_each(json_text_at(sample, "after.models"), i, m) {
        const char *name = ctl_text(m, "name");

        rc = rc ? rc : ask(ctl, "Units", ctl_model_parameter(name), "units", units, name);
        rc = rc ? rc
                : ask(ctl, "PlanExplain", ctl_model_parameter(name), "explanation", explanations,
                      name);
    }
    return rc;
}

/* Numbers of policies whose governor nobody here can write: sysfs is read-only in a container. */
static json_t *read_only_policies(const json_t *status)
{
    json_t *list = json_array();

    json_text_each(json_text_at(status, "sensors.policies"), i, p) {
        json_int_t number = json_integer_value(json_object_get(p, "policy"));
        char path[128];

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpufreq/policy%lld/scaling_governor",
                 (long long)number);
        if (access(path, W_OK) < 0 && errno == EROFS) {
            json_array_append_new(list, json_integer(number));
        }
    }
    return list;
}

static void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}

static void add_programs(json_t *sample, const json_t *before, const json_t *after)
{
    const json_t *status = json_object_get(sample, "after");
    double all_s = ctl_real(after, "all_s") - ctl_real(before, "all_s");

    json_object_set_new(sample, "programs",
                        programs_between(before, after, doctor_seconds(sample),
                                         json_integer_value(json_object_get(status, "pid"))));
    if (all_s > 0) {
        json_object_set_new(
            sample, "steal",
            json_real((ctl_real(after, "steal_s") - ctl_real(before, "steal_s")) / all_s));
    }
}

/* Asks for the status as the sample's @key. */
static int look(const struct ctl *ctl, const struct doctor_watch *w, json_t *sample,
                const char *key)
{
    int rc = ask(ctl, "Status", ctl_model_parameter(w->model), "status", sample, key);

    if (rc == CTL_DONE && w->see) {
        w->see(w->context, json_object_get(sample, key));
    }
    return rc;
}

/* Looks again and again until the time is over; the last one is "after". */
static int watch(const struct ctl *ctl, const struct doctor_watch *w, json_t *sample)
{
    uint64_t begun = base_now_ns();
    double passed = 0;
    int rc = CTL_DONE;

    while (rc == CTL_DONE && passed < w->seconds) {
        double left = w->seconds - passed;

        sleep_for(w->every_s > 0 && w->every_s < left ? w->every_s : left);
        passed = (double)(base_now_ns() - begun) / 1e9;
        rc = look(ctl, w, sample, "after");
    }
    return rc;
}

int doctor_sample(const struct ctl *ctl, const struct doctor_watch *w, json_t **ret)
{
    json_auto_t *sample = json_object(), *before = programs_now(), *after = NULL;
    int rc = look(ctl, w, sample, "before");

    rc = rc ? rc : watch(ctl, w, sample);
    after = programs_now();
    rc = rc ? rc : ask(ctl, "Models", json_object(), "models", sample, "models");
    rc = rc ? rc : ask(ctl, "Config", json_object(), "config", sample, "config");
    rc = rc ? rc
            : ask(ctl, "History", json_pack("{s:i}", "limit", EVENTS), "events", sample, "events");
    rc = rc ? rc : ask_models(ctl, sample);
    if (rc == CTL_DONE) {
        add_programs(sample, before, after);
        json_object_set_new(sample, "read_only",
                            read_only_policies(json_object_get(sample, "after")));
        *ret = base_take(sample);
    }
    return rc;
}
