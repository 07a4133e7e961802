/* SPDX-License-Identifier: Apache-2.0 */
/* Calls are checked by what the interface declares. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "daemon/control/methods.h"
#include "ipc/varlink.h"
#include "tests/harness.h"

static const char interface[] = "interface a.b\n\n"
                                "# method NotThis(x: int) -> ()\n"
                                "method None() -> (answer: string)\n\n"
                                "method All(s: string, i: int, f: float, b: bool,\n"
                                "  list: []object, o: object) -> ()\n\n"
                                "method May(\n  model: ?string,\n  keep: ?[]string,\n  ms: ?int\n"
                                ") -> (event: ?object)\n\n"
                                "method AllOfThem(all: int) -> ()\n";

#define ALL "\"s\": \"x\", \"i\": 1, \"f\": 1.5, \"b\": true, \"list\": [], \"o\": {}"

/* Return: what is wrong with the call; "": nothing. */
static const char *bad(const char *method, const char *parameters)
{
    static char text[DMN_PARAMETER_MAX];
    char missing[DMN_PARAMETER_MAX];
    json_t *given = json_loads(parameters, JSON_ALLOW_NUL, NULL);
    const char *name;

    name = given ? dmn_parameters_bad(dmn_parameters_of(interface, method), given, missing)
                 : "not JSON";
    snprintf(text, sizeof(text), "%s", name ? name : "");
    json_decref(given);
    return text;
}

TEST(each_has_its_type)
{
    static const char *const wrong[] = {"5", "\"\"", "[1]", "{}", "null", "1.5", "true"};

    T_STR(bad("All", "{" ALL "}"), "");
    T_STR(bad("All", "{" ALL ", \"f\": 2}"), "");
    for (size_t i = 0; i < base_array_count(wrong); i++) {
        static const struct {
            const char *name, *good;
        } types[] = {{"s", "\"\""}, {"i", "5"}, {"b", "true"}, {"list", "[1]"}, {"o", "{}"}};

        for (size_t t = 0; t < base_array_count(types); t++) {
            char text[256];

            snprintf(text, sizeof(text), "{" ALL ", \"%s\": %s}", types[t].name, wrong[i]);
            T_STR(bad("All", text), strcmp(wrong[i], types[t].good) == 0 ? "" : types[t].name);
        }
    }
    T_STR(bad("All", "{" ALL ", \"f\": \"1\"}"), "f");
    T_STR(bad("All", "{" ALL ", \"s\": \"a\\u0000b\"}"), "s");
}

TEST(what_is_missing_or_unknown_is_named)
{
    T_STR(bad("None", "{}"), "");
    T_STR(bad("None", "{\"answer\": \"\"}"), "answer");
    T_STR(bad("All", "{}"), "s");
    T_STR(bad("All", "{\"s\": \"\"}"), "i");
    T_STR(bad("All", "{" ALL ", \"li\": []}"), "li");
    T_STR(bad("AllOfThem", "{\"all\": 1}"), "");
}

TEST(some_may_be_absent_or_null)
{
    T_STR(bad("May", "{}"), "");
    T_STR(bad("May", "{\"model\": null, \"keep\": null, \"ms\": null}"), "");
    T_STR(bad("May", "{\"keep\": [\"a\"], \"ms\": 5, \"model\": \"m\"}"), "");
    T_STR(bad("May", "{\"ms\": 5.5}"), "ms");
    T_STR(bad("May", "{\"event\": {}}"), "event");
}

TEST(only_methods_are_found)
{
    T_TRUE(!dmn_parameters_of(interface, "NotThis"));
    T_TRUE(!dmn_parameters_of(interface, "Al"));
    T_TRUE(!dmn_parameters_of(interface, ""));
    T_TRUE(dmn_parameters_of(interface, "All") != dmn_parameters_of(interface, "AllOfThem"));
}

/* Whatever the real interface declares can be read: a call without parameters lacks one that must
 * be there, or is good; and an unknown one is noticed. */
TEST(the_interface_can_be_read)
{
    json_t *none = json_object(), *odd = json_pack("{s:n}", "no_such_parameter");
    char missing[DMN_PARAMETER_MAX], name[DMN_PARAMETER_MAX];
    size_t count = 0;

    for (const char *at = ipc_varlink_interface; (at = strstr(at, "\nmethod ")) != NULL; at++) {
        const char *declared, *found;

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 8, "("), at + 8);
        declared = dmn_parameters_of(ipc_varlink_interface, name);
        T_TRUE(declared != NULL);
        found = dmn_parameters_bad(declared, none, missing);
        T_TRUE(!found ||
               (found == missing && strspn(found, "abcdefghijklmnopqrstuvwxyz_") == strlen(found)));
        T_STR(dmn_parameters_bad(declared, odd, missing), "no_such_parameter");
        count++;
    }
    T_TRUE(count > 25);
    json_decref(none);
    json_decref(odd);
}

TEST_MAIN()
