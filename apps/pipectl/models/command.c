/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl models: lists, loads and unloads; inspects and fetches files, which needs no daemon. */
#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/models/models.h"
#include "apps/show/fold_segments.h"
#include "base/path_below.h"
#include "ipc/protocol.h"

/* ---- list ---- */

static void print_warnings(const json_t *models)
{
    json_text_each(models, i, m) {
        json_text_each(json_object_get(m, "warnings"), k, warning) {
            shown_printf("warning: %s: %s\n", ctl_text(m, "name"), json_string_value(warning));
        }
    }
}

static void print_models(const json_t *reply)
{
    static const struct cli_column columns[] = {{"name", "name", 'l'},
                                                {"units", "units", 'r'},
                                                {"input", "input", 'l'},
                                                {"outputs", "outputs", 'l'},
                                                {"plan", "plan", 'l'},
                                                {"path", "path", 'l'},
                                                {0}};
    const json_t *models = json_object_get(reply, "models");

    cli_print_rows(models, columns);
    ctl_print_segments(reply);
    ctl_print_failed(json_object_get(reply, "failed"));
    print_warnings(models);
}

static int list(const struct ctl *ctl, const struct ctl_options *a)
{
    json_auto_t *reply = NULL;
    int rc = ctl_call(ctl, "Models", json_object(), &reply);

    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(json_object_get(reply, "models"));
    } else if (rc == CTL_DONE) {
        if (!a->all) {
            shw_fold_segments(reply);
        }
        print_models(reply);
    }
    return rc;
}

/* ---- load, unload ---- */

/* "1x3x480x640" as a list, "480" as a number. Return: new reference; NULL: neither. */
static json_t *dims_json(const char *text)
{
    json_auto_t *list = json_array();
    char *end;

    do {
        long v = strtol(text, &end, 10);

        if (end == text || *text < '0' || *text > '9' || v < 1 || v > INT_MAX ||
            (*end != 'x' && *end != '\0') || json_array_size(list) == IPC_RANK_MAX) {
            return NULL;
        }
        json_array_append_new(list, json_integer(v));
        text = end + 1;
    } while (*end);
    return json_incref(json_array_size(list) == 1 ? json_array_get(list, 0) : list);
}

/* Return: the parameter "shapes", a new reference; NULL: a shape is wrong, as was printed. */
static json_t *shapes_json(const struct ctl_options *a)
{
    json_auto_t *shapes = json_object();

    for (size_t i = 0; i < a->shapes.count; i++) {
        const char *equals = strrchr(a->shapes.text[i], '=');
        base_autofree char *name =
            equals ? strndup(a->shapes.text[i], (size_t)(equals - a->shapes.text[i])) : NULL;
        json_t *dims = equals && equals > a->shapes.text[i] ? dims_json(equals + 1) : NULL;

        if (!dims || !name || json_object_set_new(shapes, name, dims) < 0) {
            (void)ctl_usage("models",
                            "--shape needs INPUT=1x3x480x640, or the name of an open dimension and "
                            "its size, not '%s'",
                            a->shapes.text[i]);
            return NULL;
        }
    }
    return base_take(shapes);
}

/* Return: owned by the caller; NULL: no such file, as was printed. */
static char *existing(const char *file)
{
    char *path = access(file, F_OK) == 0 ? absolute_path(file) : NULL;

    if (!path) {
        ctl_say("%s: %s", file, strerror(errno));
    }
    return path;
}

/* Return: as existing(), of a model that comes with piped. */
static char *own_file(const char *name)
{
    char path[PATH_MAX];

    if (!ctl_own_model(name, path, sizeof(path))) {
        ctl_say("no model '%s' comes with piped (digits and detector do); give its file: "
                "pipectl models load NAME FILE",
                name);
        return NULL;
    }
    return existing(path);
}

/* Calls Load with the model's files as far as they can be read here: the daemon may read where we
 * may not, or the other way round. */
static int call_load(const struct ctl *ctl, const char *path, json_t *parameters, json_t **ret)
{
    struct ctl_model_files files;
    bool sends = ctl_model_files_open(path, &files);
    int rc;

    if (sends) {
        json_object_set(parameters, "files", files.names);
    }
    rc = ctl_call_fds(ctl, "Load", parameters, files.fd, sends ? files.count : 0, ret);
    if (rc == CTL_FAILED && !sends) {
        ctl_say("the model's files were not sent along, since they cannot be read here: %s",
                files.why);
    }
    ctl_model_files_close(&files);
    return rc;
}

/* Says what became of the model, and what happens at a restart. */
static void print_loaded(const char *name, const char *path, bool saved, const json_t *reply)
{
    bool copied = ctl_is(reply, "copied");
    json_auto_t *list = json_pack("[O]", json_object_get(reply, "model"));

    if (copied) {
        shown_printf(
            "%s is loaded from a copy, since the daemon may not read %s; the copy is kept %s\n"
            "what you change in its files later does not reach the copy, not by a reload either: "
            "unload %s and load it again\n",
            name, path, saved ? "over restarts, until unload --save" : "until unload or a restart",
            name);
    } else {
        shown_printf("%s is loaded%s\n", name,
                     saved ? ", and will be after a restart"
                           : " until it is unloaded or piped restarts; --save keeps it");
    }
    print_warnings(list);
}

/* A model that comes with piped may be asked for again: it is the same. @ret: it serves, as is
 * printed. Return: an exit code. */
static int is_loaded(const struct ctl *ctl, const char *name, const char *path, bool *ret)
{
    json_auto_t *models = NULL;
    int rc = ctl_ask(ctl, "Models", json_object(), "models", &models);
    const json_t *m = json_text_find(models, "name", name);

    *ret = strcmp(ctl_text(m, "path"), path) == 0;
    if (*ret) {
        ctl_tell(ctl, m, "%s is loaded already\n", name);
    }
    return rc;
}

/* @file: NULL: the model of this name that comes with piped */
static int load_model(const struct ctl *ctl, const char *name, const char *file,
                      const struct ctl_options *a, json_t *wishes)
{
    base_autofree char *path = file ? existing(file) : own_file(name);
    json_auto_t *shapes = path ? shapes_json(a) : NULL, *reply = NULL;
    json_t *parameters;
    bool loaded = false;
    int rc = CTL_DONE;

    if (!path || !shapes) {
        return path ? CTL_USAGE : CTL_FAILED;
    }
    if (!file && !a->save && !a->plan && a->shapes.count == 0 && json_object_size(wishes) == 0) {
        rc = is_loaded(ctl, name, path, &loaded);
    }
    if (rc || loaded) {
        return rc;
    }
    parameters = json_pack("{s:s, s:s, s:O, s:b, s:s*}", "name", name, "path", path, "shapes",
                           shapes, "save", a->save, "plan", a->plan);
    if (!parameters) {
        return ctl_usage("models", "the name, path or plan is not UTF-8");
    }
    json_object_update(parameters, wishes);
    rc = call_load(ctl, path, parameters, &reply);
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(json_object_get(reply, "model"));
    } else if (rc == CTL_DONE) {
        print_loaded(name, path, a->save, reply);
    }
    return rc;
}

static void print_wishes(const char *name, const json_t *w, bool saved)
{
    char text[CTL_WISHES_BYTES];

    if (ctl_wishes_text(w, text)) {
        shown_printf("%s is to have %s; %s\n", name, text,
                     saved ? "also after a restart" : "until a reload or restart");
    } else {
        shown_printf("%s has an even share again\n", name);
    }
}

static int set_wishes(const struct ctl *ctl, const char *name, const struct ctl_options *a,
                      json_t *wishes)
{
    json_auto_t *reply = NULL, *kept = NULL;
    const json_t *now;
    int rc;

    if (json_object_size(wishes) == 0) {
        return ctl_usage("models",
                         "set needs --rate, --weight, --class, --deadline or --max-share");
    }
    if (json_object_set_new(wishes, "model", json_string(name)) < 0) {
        return ctl_usage("models", "the name is not UTF-8");
    }
    json_object_set_new(wishes, "save", json_boolean(a->save));
    rc = ctl_call(ctl, "SetWishes", json_incref(wishes), &reply);
    now = json_object_get(reply, "wishes");
    if (rc == CTL_DONE && ctl->json) {
        ctl_print_json(now);
    } else if (rc == CTL_DONE) {
        print_wishes(name, now, a->save);
        rc = ctl_call(ctl, "PlanMix", json_object(), &kept);
        ctl_print_wishes_kept(json_object_get(kept, "mix"));
    }
    return rc;
}

static int unload_model(const struct ctl *ctl, const char *name, const struct ctl_options *a)
{
    json_t *parameters = json_pack("{s:s, s:b}", "name", name, "save", a->save);
    json_auto_t *reply = NULL;
    int rc = parameters ? ctl_call(ctl, "Unload", parameters, &reply)
                        : ctl_usage("models", "the name is not UTF-8");

    if (rc == CTL_DONE) {
        ctl_tell(ctl, reply, "%s is unloaded%s\n", name,
                 a->save ? ", and not loaded after a restart"
                         : "; if it is saved or configured, a reload or a restart loads it again");
    }
    return rc;
}

/* ---- inspect: piped reads models, pipectl does not ---- */

/* Runs piped beside this program, else the one of the build folder, else the one in PATH. */
static void run_piped(const char *const *argv)
{
    static const char *const places[] = {"piped", "../../daemon/piped"};
    char self[PATH_MAX], path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < base_array_count(places); i++) {
        int bytes =
            snprintf(path, sizeof(path), "%.*s%s", (int)(slash - self + 1), self, places[i]);

        if (bytes > 0 && bytes < (int)sizeof(path)) {
            execv(path, (char *const *)(uintptr_t)argv);
        }
    }
    execvp("piped", (char *const *)(uintptr_t)argv);
}

static int inspect(const struct ctl *ctl, const char *file, const struct ctl_options *a)
{
    base_autofree char *text = strdup(file);
    json_auto_t *shapes = shapes_json(a);
    const char *argv[8] = {"piped", "--inspect", NULL};
    size_t at = 3;

    if (!shapes) {
        return CTL_USAGE;
    }
    for (size_t i = 0; text && i < a->shapes.count; i++) {
        char *longer = NULL;
        int bytes = asprintf(&longer, "%s%c%s", text, i ? ',' : ':', a->shapes.text[i]);

        free(text);
        text = bytes < 0 ? NULL : longer;
    }
    argv[2] = text;
    if (ctl->json) {
        argv[at++] = "--json";
    }
    if (a->write_sidecar) {
        argv[at++] = "--write-sidecar";
    }
    if (a->force) {
        argv[at++] = "--force";
    }
    if (!text || fflush(stdout) != 0) {
        return ctl_fail("out of memory");
    }
    run_piped(argv);
    return ctl_fail("cannot run piped, which reads models: %s; install it on this machine",
                    strerror(errno));
}

int ctl_models(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_options a = {.folder = "."};
    json_auto_t *wishes = json_object();
    int rc = ctl_take(argc, argv, &a, wishes);
    const char *verb;
    int left;

    if (rc) {
        return rc;
    }
    verb = optind < argc ? argv[optind++] : "list";
    left = argc - optind;
    if (strcmp(verb, "list") == 0 && left == 0) {
        return list(ctl, &a);
    }
    if (strcmp(verb, "inspect") == 0 && left == 1) {
        return inspect(ctl, argv[optind], &a);
    }
    if (strcmp(verb, "fetch") == 0 && left <= 1) {
        return ctl_models_fetch(ctl, &a, argv[optind]);
    }
    if (strcmp(verb, "load") == 0 && (left == 1 || left == 2)) {
        return load_model(ctl, argv[optind], left == 2 ? argv[optind + 1] : NULL, &a, wishes);
    }
    if (strcmp(verb, "set") == 0 && left == 1) {
        return set_wishes(ctl, argv[optind], &a, wishes);
    }
    if (strcmp(verb, "unload") == 0 && left == 1) {
        return unload_model(ctl, argv[optind], &a);
    }
    return ctl_usage("models",
                     "expected list, fetch [NAME], inspect FILE, load NAME [FILE], set NAME or "
                     "unload NAME");
}
