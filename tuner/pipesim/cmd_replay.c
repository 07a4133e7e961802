/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions that a daemon recorded, made anew. */
#include "base/base.h"
#include "base/json_text.h"
#include "tuner/json/record_json.h"
#include "tuner/pipesim/subject.h"

struct replayed {
    json_t *list; /* borrowed */
    size_t count, differ;
};

static bool replay_one(const char *path, const json_t *event, const json_t *record,
                       struct replayed *out)
{
    char error[PSIM_ERROR_MAX] = "", why[TUN_ERROR_MAX];
    struct tun_reader reader = {.path = path, .error = error};
    base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;
    base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;
    struct tun_decision recorded;
    bool same;

    tun_record_read(&reader, record, &r, &recorded);
    if (!error[0] && tun_record_check(&r, why) < 0) {
        tun_wrong(&reader, "", "%s", why);
    }
    if (error[0]) {
        psim_say("%s", error);
        return false;
    }
    if (tun_decide(&r, &d) < 0) {
        psim_say("out of memory");
        return false;
    }
    same = tun_decision_same(&recorded, &d);
    out->count++;
    out->differ += !same;
    json_array_append_new(out->list,
                          json_pack("{s:O?,s:O?,s:b,s:o,s:o}", "id", json_object_get(event, "id"),
                                    "at", json_object_get(event, "at"), "same", same, "recorded",
                                    tun_decided_json(&r.problem, &recorded), "anew",
                                    tun_decided_json(&r.problem, &d)));
    return true;
}

/* A record, an event with one as "decision", or a list of either. */
static bool replay(const char *path, const json_t *json, struct replayed *out)
{
    const json_t *record;

    if (json_is_array(json)) {
        json_text_each(json, i, entry) {
            if (!replay(path, entry, out)) {
                return false;
            }
        }
        return true;
    }
    record = json_object_get(json, "decision");
    if (json_is_object(record)) {
        return replay_one(path, json, record, out);
    }
    return !json_object_get(json, "decided") || replay_one(path, NULL, json, out);
}

static void row(struct cli_table *t, const json_t *of, const char *id, const char *what,
                const char *end)
{
    const json_t *plan = json_object_get(of, "plan"), *gain = json_object_get(of, "gain");
    char percent[32] = "must";

    if (json_is_number(gain)) {
        snprintf(percent, sizeof(percent), "%.1f %%", 100 * json_number_value(gain));
    }
    cli_table_add(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", id, what,
                  json_string_value(json_object_get(of, "cause")),
                  json_is_true(json_object_get(of, "replan"))
                      ? "re-plan"
                      : json_string_value(json_object_get(of, "hold")),
                  percent, json_is_string(plan) ? json_string_value(plan) : "", end);
}

static void print(const struct replayed *r)
{
    struct cli_table t = {.align = "lllrrll"};

    cli_table_add(&t, "id\t\tcause\tverdict\tgain\tplan\t");
    json_text_each(r->list, i, v) {
        char id[32];

        snprintf(id, sizeof(id), "%lld",
                 json_is_integer(json_object_get(v, "id"))
                     ? (long long)json_integer_value(json_object_get(v, "id"))
                     : (long long)i);
        row(&t, json_object_get(v, "recorded"), id, "recorded", "");
        row(&t, json_object_get(v, "anew"), "", "anew",
            json_is_true(json_object_get(v, "same")) ? "same" : "DIFFERS");
    }
    cli_table_print(&t);
    shown_printf("\n%zu decision%s, %zu differ%s\n", r->count, base_plural(r->count), r->differ,
                 r->differ == 1 ? "s" : "");
}

static int replay_file(const char *path, bool json)
{
    json_auto_t *list = json_array();
    struct replayed r = {.list = list};
    json_error_t error;
    json_auto_t *root = json_text_load(path, JSON_REJECT_DUPLICATES, &error);
    int code = PSIM_FAILED;

    if (!root && error.line < 0) {
        psim_say("%s: %s", path, error.text);
    } else if (!root) {
        psim_say("%s: line %d: %s", path, error.line, error.text);
    } else if (replay(path, root, &r)) {
        if (r.count == 0) {
            psim_say("%s: no recorded decision found", path);
        } else if (json) {
            code = psim_print_json(json_incref(list));
        } else {
            print(&r);
            code = PSIM_DONE;
        }
        code = r.differ ? PSIM_FAILED : code;
    }
    return code;
}

int psim_cmd_replay(int argc, char **argv)
{
    struct psim_options o = {0};
    int code = psim_options(argc, argv, &o);

    if (code) {
        return code;
    }
    if (optind + 1 != argc) {
        return psim_usage("replay", "give one file, as written by pipectl --json history");
    }
    return replay_file(argv[optind], o.json);
}
