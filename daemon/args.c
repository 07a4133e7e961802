/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of piped, and the configuration that it asks for. */
#include "daemon/daemon.h"

#include "base/cli/cli_take.h"
#include "base/path_below.h"
#include "daemon/config/state_file.h"
#include "model/open_shapes.h"

#define AT(member) offsetof(struct dmn_args, member)
#define TEXT(member) CLI_TEXT, AT(member)
#define FLAG(member) CLI_FLAG, AT(member)

static const struct cli_option options[] = {
    {"config", "FILE", "@file", "read FILE and FILE.d/*.json instead of " PIPED_CONFIG_FILE,
     TEXT(config)},
    {"model", "[NAME=]FILE", "@file",
     "also serve this model; may be given several times. NAME#FIRST-LAST=FILE serves these units "
     "of it; FILE:INPUT=1x3x480x640,... settles open dimensions",
     CLI_TEXTS, AT(models), .many = true},
    {"inspect", "FILE[:SHAPES]", "@file",
     "say what the model is and whether it can be served: 0 yes, 1 no", TEXT(inspect)},
    {"json", NULL, NULL, "--inspect: print JSON", FLAG(json)},
    {"write-sidecar", NULL, NULL, "--inspect: write a draft of its sidecar beside FILE",
     FLAG(write_sidecar)},
    {"force", NULL, NULL, "--write-sidecar: replace a sidecar that is there", FLAG(force)},
    {"check-config", NULL, NULL, "check configuration and models, then exit: 0 good, 78 bad",
     FLAG(check_config)},
    {"runtime-dir", "DIR", "@folder", "make frames.sock and control.sock in DIR",
     TEXT(runtime_dir)},
    {"state-dir", "DIR", "@folder", "keep learned plans in DIR", TEXT(state_dir)},
    {"sysfs-root", "DIR", "@folder", "read cores and sensors below DIR instead of /",
     TEXT(sysfs_root)},
    {"version", NULL, NULL, "print the version", CLI_VERSION},
    {"verbose", NULL, NULL, "log everything", FLAG(verbose), .letter = 'v'},
    {"help", NULL, NULL, "print this", FLAG(help), .letter = 'h'},
    {0}};
static const struct cli_command commands[] = {
    {"piped", NULL, "", "Serves neural networks as pipelines of pinned stages.", options, NULL},
    {0}};
static const struct cli_program program = {"piped", NULL, commands};

/* Prints --help, with the configuration keys. */
static void print_help(FILE *to)
{
    cli_print_help(to, &program, commands);
    fputs("\nConfiguration keys (see piped.json(5), which has advanced ones, too):\n", to);
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        if (!dmn_config_rows[i].advanced) {
            fprintf(to, "  %s\n      ", dmn_config_rows[i].key);
            cli_print_wrapped(to, dmn_config_rows[i].help, 6, 6);
        }
    }
    fputs(
        "  models, eps\n      Models to serve, and execution places that replace the found ones.\n",
        to);
}

/* Return: the "=" behind NAME, which has neither colon nor slash; NULL: there is no NAME. */
static const char *name_end(const char *text)
{
    const char *end = text + strcspn(text, "=:/");

    return *end == '=' ? end : NULL;
}

const char *dmn_args_model_name(const char *text, char *ret_name, size_t bytes)
{
    const char *equals = name_end(text), *slash;
    const char *base, *dot;

    if (equals) {
        snprintf(ret_name, bytes, "%.*s", (int)base_min((ptrdiff_t)4096, equals - text), text);
        return equals + 1;
    }
    slash = strrchr(text, '/');
    base = slash ? slash + 1 : text;
    dot = strrchr(base, '.');
    snprintf(ret_name, bytes, "%.*s",
             (int)base_min((size_t)4096, dot && dot > base ? (size_t)(dot - base) : strlen(base)),
             base);
    return text;
}

int dmn_args_parse(int argc, char **argv, struct dmn_args *ret)
{
    struct dmn_args a = {0};
    int rc = cli_take(&program, argc, argv, &a, NULL);

    rc = rc ? rc : cli_no_more(&program, argc, argv);
    if (rc == 0 && a.help) {
        print_help(stdout);
        rc = CLI_ENDED;
    }
    if (rc) {
        return rc == CLI_ENDED ? DMN_ARGS_E_DONE : DMN_ARGS_E_USAGE;
    }
    if (!a.inspect && (a.json || a.write_sidecar || a.force)) {
        shown_say("piped", "--json, --write-sidecar and --force belong to --inspect; try --help");
        return DMN_ARGS_E_USAGE;
    }
    *ret = a;
    return 0;
}

/* ---- the configuration for a command line: files, then the models it names ---- */

#define STAND_IN "digits"

static int add_models(const struct dmn_args *args, char *ret_error, struct dmn_config *c)
{
    for (size_t i = 0; i < args->models.count; i++) {
        const char *given = args->models.text[i], *equals = name_end(given);
        const char *shapes = mdl_shapes_suffix(equals ? equals + 1 : given);
        size_t bytes = shapes ? (size_t)(shapes - 1 - given) : strlen(given);
        base_autofree char *text = strndup(given, bytes), *path = NULL;
        char name[4200];
        const char *file = text ? dmn_args_model_name(text, name, sizeof(name)) : NULL;
        int error;

        path = file ? absolute_path(file) : NULL; /* a reload must not depend on the folder */
        error = file ? dmn_config_add_model(c, name, path ? path : file, shapes ? shapes : "",
                                            ret_error)
                     : -ENOMEM;
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

/* While no model is configured, the one that comes with piped is served, after those that were
 * saved: they add to what is served, and take nothing away. */
static int add_stand_in(char *ret_error, struct dmn_config *c)
{
    const char *path =
        base_is_missing(PIPED_DEFAULT_MODEL) ? PIPED_DEFAULT_MODEL_BUILD : PIPED_DEFAULT_MODEL;
    int error = 0;

    if (c->model_count < (size_t)dmn_config_int(c, DMN_KEY_LIMIT_MODELS) &&
        !dmn_config_find_model(c, STAND_IN)) {
        error = dmn_config_add_model(c, STAND_IN, path, "", ret_error);
        if (!error) {
            struct dmn_config_model *m = dmn_config_find_model(c, STAND_IN);

            m->stand_in = true;
            m->origin = DMN_ORIGIN_DEFAULT;
        }
    }
    return error;
}

static int too_many(const struct dmn_config *c, char *ret_error)
{
    const struct dmn_config_value *limit = &c->values[DMN_KEY_LIMIT_MODELS];
    char at[DMN_CONFIG_WHERE_MAX];
    size_t saved = 0;

    for (size_t i = 0; i < c->model_count; i++) {
        saved += c->models[i].saved;
    }
    dmn_config_where(c, limit->origin, limit->line, at);
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
             "%s: limits.models: %lld, but there are %zu models, %zu of them saved by "
             "pipectl models load",
             at, (long long)limit->number, c->model_count, saved);
    return -EINVAL;
}

int dmn_config_from_args(const struct dmn_args *args, const char *state_dir, char *ret_error,
                         struct dmn_config **ret)
{
    struct dmn_config *c = NULL;
    bool configured;
    int error = dmn_config_load(args->config ? args->config : PIPED_CONFIG_FILE,
                                args->config != NULL, ret_error, &c);

    if (error < 0) {
        return error;
    }
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
    error = add_models(args, ret_error, c);
    configured = c->model_count > 0;
    error = error ? error : dmn_saved_merge(c, state_dir);
    error = error || configured ? error : add_stand_in(ret_error, c);
    if (!error && c->model_count > (size_t)dmn_config_int(c, DMN_KEY_LIMIT_MODELS)) {
        error = too_many(c, ret_error);
    }
    if (error < 0) {
        dmn_config_free(c);
        return error;
    }
    *ret = c;
    return 0;
}
