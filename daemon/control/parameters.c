/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a call's parameters by what the interface declares, and reads them. An interface is the
 * text that GetInterfaceDescription answers, such as ipc_varlink_interface: so what is declared is
 * what is checked. */
#include "daemon/control/methods.h"

#include <sys/mman.h>

#include "base/json_text.h"

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
    dmn_call_service_error(c, "InvalidParameter", "parameter", key);
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
        dmn_call_error(c, "NotFound", "%s", what);
    }
    return m;
}

/* ---- examples ---- */

struct dmn_examples *dmn_examples_free(struct dmn_examples *e)
{
    if (e) {
        krn_examples_deinit(&e->set);
        if (e->map) {
            munmap(e->map, e->map_bytes);
        }
        free(e);
    }
    return NULL;
}

/* Maps sealed memory, which nobody can change or shrink. Return: NULL, or the reason for
 * refusing. */
static const char *map(struct dmn_examples *e, int fd)
{
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (fd < 0) {
        return "the call has no file descriptor with the examples";
    }
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) == 0 ||
        fstat(fd, &st) < 0) {
        return "the examples must be in a memfd that is sealed against writing and shrinking";
    }
    if (st.st_size <= 0 || (uint64_t)st.st_size > DMN_EXAMPLES_BYTES_MAX) {
        return "the examples have no bytes, or more than 2 GiB";
    }
    e->map_bytes = (size_t)st.st_size;
    e->map = mmap(NULL, e->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (e->map == MAP_FAILED) {
        e->map = NULL;
        return "cannot map the examples";
    }
    return NULL;
}

static const char *list(struct dmn_examples *e, const json_t *examples)
{
    size_t at = 0;

    json_text_each(examples, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_int_t bytes = json_integer_value(json_object_get(entry, "bytes"));

        if (!name || bytes < 0 || (uint64_t)bytes > e->map_bytes - at) {
            return "an example has no name, or fewer bytes than it says";
        }
        if (krn_examples_add(&e->set, name, (const uint8_t *)e->map + at, (size_t)bytes, false) <
            0) {
            return "too many examples";
        }
        at += (size_t)bytes;
    }
    return e->set.count ? NULL : "the call has no examples";
}

struct dmn_examples *dmn_examples_take(struct dmn_call *c)
{
    struct dmn_examples *e = calloc(1, sizeof(*e));
    base_autoclose int fd = dmn_call_take_fd(c);
    const char *why = e ? map(e, fd) : "out of memory";

    why = why ? why : list(e, json_object_get(c->parameters, "examples"));
    if (why) {
        dmn_call_error(c, "Unsupported", "%s", why);
        return dmn_examples_free(e);
    }
    return e;
}
