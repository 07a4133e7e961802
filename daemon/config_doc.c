/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of configuration keys as JSON, from which config_pages.py makes etc/piped.json
 * and the keys of piped.json(5). Not installed. */

#include "base/base.h"
#include "base/json_text.h"
#include "daemon/config/config.h"
#include "daemon/control/json.h"

static json_t *range_json(const struct dmn_config_row *row)
{
    switch (row->type) {
    case DMN_CONFIG_INT:
        return json_sprintf("%lld to %lld%s%s", (long long)row->min, (long long)row->max,
                            *row->unit ? " " : "", row->unit);
    case DMN_CONFIG_BOOL:
        return json_string("true or false");
    case DMN_CONFIG_ENUM:
        return json_sprintf("one of %s", row->choices);
    default:
        return json_sprintf("text of at most %lld bytes", (long long)row->max);
    }
}

/* The keys as the method Config has them, with their ranges. */
static json_t *keys_json(const struct dmn_config *c)
{
    json_t *keys = dmn_config_json(c);

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const struct dmn_config_row *row = &dmn_config_rows[i];

        json_object_update_new(
            json_array_get(keys, i),
            json_pack("{s:o, s:b}", "range", range_json(row), "restart", row->restart));
    }
    return keys;
}

static json_t *items_json(void)
{
    json_t *items = json_array();

    for (size_t i = 0; i < DMN_CONFIG_ITEM_COUNT; i++) {
        const struct dmn_config_item_row *row = &dmn_config_item_rows[i];

        json_array_append_new(items,
                              json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "array", row->array,
                                        "key", row->key, "type", row->type, "default", row->value,
                                        "help", row->help, "required", row->required));
    }
    return items;
}

int main(void)
{
    char error[DMN_CONFIG_ERROR_MAX];
    struct dmn_config *c = NULL;
    json_t *all;
    int rc;

    if (dmn_config_load(NULL, false, error, &c) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    all = json_pack("{s:o, s:o}", "keys", keys_json(c), "items", items_json());
    dmn_config_free(c);
    rc = json_text_print(all, stdout, 0);
    json_decref(all);
    return rc < 0;
}
