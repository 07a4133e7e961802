/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/varlink.h"

#include "base/base.h"
#include "base/json_text.h"
#include "ipc/interface_text.h"
#include "ipc/wire.h"

const char ipc_varlink_interface[] = IPC_INTERFACE_TEXT;

#define FIRST_BYTES ((size_t)4096)
/* Of bytes not taken yet: a whole message, and the start of the next. */
#define READER_MAX (2 * (size_t)IPC_VARLINK_MESSAGE_MAX)

void ipc_varlink_reader_deinit(struct ipc_varlink_reader *r)
{
    free(r->data);
    *r = IPC_VARLINK_READER_NULL;
}

static int reserve(struct ipc_varlink_reader *r, size_t count)
{
    if (r->start > 0) {
        memmove(r->data, r->data + r->start, r->used - r->start);
        r->used -= r->start;
        r->scanned -= r->start;
        r->start = 0;
    }
    return base_room_for(&r->data, 1, base_max(r->used + count, FIRST_BYTES), &r->size) ? 0
                                                                                        : -ENOMEM;
}

int ipc_varlink_feed(struct ipc_varlink_reader *r, const void *bytes, size_t count)
{
    const char *last;
    size_t tail;
    int rc;

    if (count == 0) {
        return 0;
    }
    if (count > READER_MAX || r->used - r->start > READER_MAX - count) {
        return IPC_VARLINK_E_TOO_BIG;
    }
    last = memrchr(bytes, 0, count);
    tail = last ? (size_t)((const char *)bytes + count - last - 1) : r->tail + count;
    if (tail >= IPC_VARLINK_MESSAGE_MAX) {
        return IPC_VARLINK_E_TOO_BIG;
    }
    rc = reserve(r, count);
    if (rc < 0) {
        return rc;
    }
    memcpy(r->data + r->used, bytes, count);
    r->used += count;
    r->tail = tail;
    return 0;
}

/* jansson recurses, so nesting is checked first, without recursion. */
static bool too_deep(const char *text, size_t bytes)
{
    bool string = false;
    size_t depth = 0;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];

        if (string) {
            i += c == '\\';
            string = c != '"';
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > IPC_VARLINK_DEPTH_MAX) {
                return true;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

int ipc_varlink_next(struct ipc_varlink_reader *r, json_t **ret)
{
    const char *message, *end;
    json_error_t error = {0}; /* Jansson does not set it if it lacks memory at once */
    json_t *value;
    size_t bytes;

    end = r->used > r->scanned ? memchr(r->data + r->scanned, 0, r->used - r->scanned) : NULL;
    if (!end) {
        r->scanned = r->used;
        return IPC_VARLINK_E_NONE;
    }
    message = r->data + r->start;
    bytes = (size_t)(end - message);
    r->start += bytes + 1;
    r->scanned = r->start;
    if (bytes >= IPC_VARLINK_MESSAGE_MAX || too_deep(message, bytes)) {
        return IPC_VARLINK_E_BAD_JSON;
    }
    value = json_loadb(message, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!value) {
        return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM
                                                                   : IPC_VARLINK_E_BAD_JSON;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return IPC_VARLINK_E_BAD_JSON;
    }
    *ret = value;
    return 0;
}

static bool get_flag(json_t *message, const char *key, bool *ret)
{
    json_t *v = json_object_get(message, key);

    *ret = json_is_true(v);
    return !v || json_is_boolean(v) || json_is_null(v);
}

int ipc_varlink_parse_call(json_t *message, struct ipc_varlink_call *ret)
{
    json_t *method = json_object_get(message, "method");
    json_t *parameters = json_object_get(message, "parameters");
    bool more, oneway;

    if (!json_is_string(method) || !get_flag(message, "more", &more) ||
        !get_flag(message, "oneway", &oneway)) {
        return IPC_VARLINK_E_BAD_JSON;
    }
    if (!parameters || json_is_null(parameters)) {
        /* the message owns the empty object */
        if (json_object_set_new(message, "parameters", json_object()) < 0) {
            return IPC_VARLINK_E_BAD_JSON;
        }
        parameters = json_object_get(message, "parameters");
    }
    if (!json_is_object(parameters)) {
        return IPC_VARLINK_E_BAD_JSON;
    }
    *ret = (struct ipc_varlink_call){json_string_value(method), parameters, more, oneway};
    return 0;
}

static int encode(const char *key, const char *value, json_t *parameters, const char *flag,
                  char **ret, size_t *ret_bytes)
{
    json_auto_t *message = json_object();
    json_t *copy = parameters ? json_incref(parameters) : json_object();
    char *text;

    if (!message || !copy || json_object_set_new(message, "parameters", copy) < 0 ||
        (key && json_object_set_new(message, key, json_string(value)) < 0) ||
        (flag && json_object_set_new(message, flag, json_true()) < 0)) {
        return -ENOMEM;
    }
    text = json_text(message, JSON_COMPACT);
    if (!text) {
        return -ENOMEM;
    }
    *ret = text;
    *ret_bytes = strlen(text) + 1;
    return 0;
}

int ipc_varlink_call(const char *method, json_t *parameters, bool more, char **ret,
                     size_t *ret_bytes)
{
    return encode("method", method, parameters, more ? "more" : NULL, ret, ret_bytes);
}

int ipc_varlink_reply(json_t *parameters, bool continues, char **ret, size_t *ret_bytes)
{
    return encode(NULL, NULL, parameters, continues ? "continues" : NULL, ret, ret_bytes);
}

int ipc_varlink_error(const char *error, json_t *parameters, char **ret, size_t *ret_bytes)
{
    return encode("error", error, parameters, NULL, ret, ret_bytes);
}

void ipc_varlink_error_text(const char *error, const json_t *parameters, char *ret, size_t bytes)
{
    const char *dot = error ? strrchr(error, '.') : NULL, *between = ": ", *key;
    json_t *value;

    if (error && strcmp(error, IPC_VARLINK_NOT_STARTED) == 0) {
        snprintf(ret, bytes, "%s", IPC_NOT_STARTED);
        between = "";
    } else {
        snprintf(ret, bytes, "%s", dot ? dot + 1 : "the daemon refused");
    }
    json_object_foreach((json_t *)parameters, key, value)
    {
        if (json_is_string(value)) {
            base_append(ret, bytes, "%s%s", between, json_string_value(value));
            between = ", ";
        }
    }
}
