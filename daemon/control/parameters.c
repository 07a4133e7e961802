/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/parameters.h"

#include "base/base.h"

/* One of "model: ?string, plan: string)". */
struct parameter {
    const char *name;
    size_t length;
    bool optional;
    char type; /* the first letter of its type */
};

static bool next(const char **at, struct parameter *ret)
{
    const char *p = *at + strspn(*at, " ,\n");

    if (*p == ')') {
        return false;
    }
    ret->name = p;
    ret->length = strcspn(p, ":");
    p += ret->length;
    p += strspn(p, ": ");
    ret->optional = *p == '?';
    p += ret->optional;
    ret->type = *p;
    *at = p + strcspn(p, ",)");
    return true;
}

static bool find(const char *declared, const char *name, struct parameter *ret)
{
    while (next(&declared, ret)) {
        if (strlen(name) == ret->length && strncmp(name, ret->name, ret->length) == 0) {
            return true;
        }
    }
    return false;
}

static bool of_type(const json_t *value, char type)
{
    switch (type) {
    case 's':
        return json_is_string(value) &&
               strlen(json_string_value(value)) == json_string_length(value);
    case 'i':
        return json_is_integer(value);
    case 'f':
        return json_is_number(value);
    case 'b':
        return json_is_boolean(value);
    case '[':
        return json_is_array(value);
    default:
        return json_is_object(value);
    }
}

const char *dmn_parameters_of(const char *interface, const char *method)
{
    char begin[DMN_PARAMETER_MAX];
    int length = snprintf(begin, sizeof(begin), "\nmethod %s(", method);
    const char *at = strstr(interface, begin);

    return at ? at + length : NULL;
}

const char *dmn_parameters_bad(const char *declared, json_t *given, char *ret)
{
    struct parameter p;
    const char *key;
    json_t *value;

    json_object_foreach(given, key, value)
    {
        if (!find(declared, key, &p) ||
            !(of_type(value, p.type) || (p.optional && json_is_null(value)))) {
            return key;
        }
    }
    while (next(&declared, &p)) {
        snprintf(ret, DMN_PARAMETER_MAX, "%.*s", (int)p.length, p.name);
        if (!p.optional && !json_object_get(given, ret)) {
            return ret;
        }
    }
    return NULL;
}
