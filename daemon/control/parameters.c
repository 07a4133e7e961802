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

const char *dmn_call_text(const struct dmn_call *c, const char *key)
{
    return json_string_value(json_object_get(c->parameters, key));
}

bool dmn_call_asks(const struct dmn_call *c, const char *key)
{
    return json_is_true(json_object_get(c->parameters, key));
}

bool dmn_call_invalid(struct dmn_call *c, const char *key)
{
    dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", key);
    return false;
}

bool dmn_call_number(struct dmn_call *c, const char *key, double least, double most, double *ret)
{
    const json_t *value = json_object_get(c->parameters, key);
    double number = json_number_value(value);

    if (json_is_number(value) && !(number >= least && number <= most)) {
        return dmn_call_invalid(c, key);
    }
    *ret = json_is_number(value) ? number : *ret;
    return true;
}

bool dmn_call_integer(struct dmn_call *c, const char *key, json_int_t least, json_int_t most,
                      json_int_t *ret)
{
    const json_t *value = json_object_get(c->parameters, key);
    json_int_t number = json_integer_value(value);

    if (json_is_integer(value) && (number < least || number > most)) {
        return dmn_call_invalid(c, key);
    }
    *ret = json_is_integer(value) ? number : *ret;
    return true;
}

struct dmn_model *dmn_call_model(struct dmn_call *c, const char *key)
{
    const char *name = dmn_call_text(c, key);
    struct dmn_model *m = name && *name ? dmn_model_find(c->control->models, name)
                                        : dmn_model_default(c->control->models);

    if (!m) {
        char what[DMN_MODEL_MISSING_BYTES];

        dmn_model_missing(c->control->models, name ? name : "", what, sizeof(what));
        dmn_call_error(c, "NotFound", "what", what);
    }
    return m;
}
