/* SPDX-License-Identifier: Apache-2.0 */
/* pipesim list: what platforms, networks, searches and scenarios there are. */
#include "base/base.h"
#include "base/json_text.h"
#include "tuner/pipesim/subject.h"
#include "tuner/search/search.h"

/* What can be said of a description that may be broken: its title, or what is wrong with it. */
static json_t *platform_entry(const char *name)
{
    char error[PSIM_ERROR_MAX];
    struct psim_platform m;
    json_t *eps;

    if (psim_platform_load(name, error, &m) < 0) {
        return json_pack("{s:s,s:s}", "name", name, "error", error);
    }
    eps = json_array();
    for (size_t k = 0; k < m.ep_count; k++) {
        json_array_append_new(
            eps, json_pack("{s:s,s:i}", "name", m.eps[k].ep.name, "cores", (int)m.eps[k].ep.cores));
    }
    return json_pack("{s:s,s:s,s:o}", "name", name, "title", m.title, "kinds", eps);
}

static json_t *gather(void)
{
    char **platforms = psim_names(&psim_platforms), **networks = psim_names(&psim_networks);
    json_t *p = json_array(), *n = json_array(), *a = json_array();
    size_t count;
    const struct tun_algorithm *const *algorithms = tun_algorithms(&count);

    for (size_t i = 0; platforms && platforms[i]; i++) {
        json_array_append_new(p, platform_entry(platforms[i]));
    }
    for (size_t i = 0; networks && networks[i]; i++) {
        json_array_append_new(n, json_string(networks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(
            a, json_pack("{s:s,s:s}", "name", algorithms[i]->name, "what", algorithms[i]->what));
    }
    psim_names_free(platforms);
    psim_names_free(networks);
    return json_pack("{s:o,s:o,s:o}", "platforms", p, "networks", n, "algorithms", a);
}

static void print_named(const json_t *list, const char *head, const char *key)
{
    shown_printf("%s\n", head);
    json_text_each(list, i, v) {
        const char *text = json_text_of(v, key);

        cli_print_entry(stdout, json_text_of(v, "name"), *text ? text : json_text_of(v, "error"));
    }
}

int psim_cmd_list(int argc, char **argv)
{
    struct psim_options o = {0};
    int code = psim_options(argc, argv, &o);
    json_t *all;

    if (code) {
        return code;
    }
    all = gather();
    if (!all) {
        return psim_fail("out of memory");
    }
    if (o.json) {
        return psim_print_json(all);
    }
    print_named(json_object_get(all, "platforms"), "platforms", "title");
    puts("networks");
    json_text_each(json_object_get(all, "networks"), i, v) {
        shown_printf("  %s\n", json_string_value(v));
    }
    print_named(json_object_get(all, "algorithms"), "algorithms", "what");
    json_decref(all);
    return PSIM_DONE;
}
