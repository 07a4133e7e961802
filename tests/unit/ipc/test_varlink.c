/* SPDX-License-Identifier: Apache-2.0 */
/* Varlink framing: pieces, limits, bad JSON, envelopes. */
#include "ipc/varlink.h"
#include "tests/harness.h"

TEST(messages_in_any_pieces)
{
    static const char bytes[] = "{\"method\":\"a.B\"}\0{\"x\":[1,2,{\"y\":\"}\\\"{\"}]}\0{}";
    size_t total = sizeof(bytes); /* the last NUL ends the third message */

    for (size_t piece = 1; piece <= total; piece++) {
        struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
        size_t messages = 0;

        for (size_t i = 0; i < total; i += piece) {
            json_t *m;
            int rc;

            T_EQ(ipc_varlink_feed(&r, bytes + i, piece < total - i ? piece : total - i), 0);
            while ((rc = ipc_varlink_next(&r, &m)) == 0) {
                messages++;
                json_decref(m);
            }
            T_EQ(rc, IPC_VARLINK_E_NONE);
        }
        T_EQ(messages, 3);
        ipc_varlink_reader_deinit(&r);
        ipc_varlink_reader_deinit(&r);
    }
}

TEST(nothing_came)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    json_t *m;

    T_EQ(ipc_varlink_next(&r, &m), IPC_VARLINK_E_NONE);
    ipc_varlink_reader_deinit(&r);
}

static int next_of(const char *bytes, size_t count)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    json_t *m = NULL;
    int rc = ipc_varlink_feed(&r, bytes, count);

    if (rc == 0) {
        rc = ipc_varlink_next(&r, &m);
    }
    if (rc == 0) {
        json_decref(m);
    }
    ipc_varlink_reader_deinit(&r);
    return rc;
}

TEST(bad_json)
{
    static const char *const bad[] = {"",       "x",
                                      "[]",     "1",
                                      "\"a\"",  "{",
                                      "{}}",    "{\"a\":}",
                                      "{} {}",  "{\"a\":1,\"a\":2}",
                                      "\xff{}", "{\"a\":\"\xff\"}"};

    T_EQ(next_of("{\"a\":1}", 8), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_EQ(next_of(bad[i], strlen(bad[i]) + 1), IPC_VARLINK_E_BAD_JSON);
    }
}

TEST(a_bad_message_does_not_spoil_the_next)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    json_t *m;

    T_EQ(ipc_varlink_feed(&r, "nonsense\0{\"a\":1}", 17), 0);
    T_EQ(ipc_varlink_next(&r, &m), IPC_VARLINK_E_BAD_JSON);
    T_EQ(ipc_varlink_next(&r, &m), 0);
    T_EQ(json_integer_value(json_object_get(m, "a")), 1);
    json_decref(m);
    ipc_varlink_reader_deinit(&r);
}

static int nested(size_t depth, bool in_string)
{
    char *text = calloc(1, 2 * depth + 64);
    int rc;

    strcpy(text, in_string ? "{\"a\":\"\\\"" : "{\"a\":");
    for (size_t i = 0; i + 1 < depth; i++) {
        strcat(text, "[");
    }
    for (size_t i = 0; i + 1 < depth && !in_string; i++) {
        strcat(text, "]");
    }
    strcat(text, in_string ? "\"}" : depth > 1 ? "}" : "1}");
    rc = next_of(text, strlen(text) + 1);
    free(text);
    return rc;
}

TEST(depth)
{
    T_EQ(nested(IPC_VARLINK_DEPTH_MAX, false), 0);
    T_EQ(nested(IPC_VARLINK_DEPTH_MAX + 1, false), IPC_VARLINK_E_BAD_JSON);
    T_EQ(nested(5000, false), IPC_VARLINK_E_BAD_JSON);
    T_EQ(nested(5000, true), 0); /* brackets within a string do not count */
}

static char *long_message(size_t bytes) /* with the NUL */
{
    char *text = malloc(bytes);

    memset(text, ' ', bytes);
    text[0] = '{';
    text[bytes - 2] = '}';
    text[bytes - 1] = 0;
    return text;
}

TEST(size_limit)
{
    char *most = long_message(IPC_VARLINK_MESSAGE_MAX);
    char *more = long_message(IPC_VARLINK_MESSAGE_MAX + 1);
    int rc = next_of(most, IPC_VARLINK_MESSAGE_MAX);

    T_EQ(rc, 0);
    rc = next_of(more, IPC_VARLINK_MESSAGE_MAX + 1);
    T_EQ(rc, IPC_VARLINK_E_BAD_JSON);
    free(most);
    free(more);
}

TEST(endless_message_is_refused_early)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    char piece[4096];
    size_t fed = 0;
    int rc = 0;

    memset(piece, 'x', sizeof(piece));
    while (rc == 0 && fed <= 2 * IPC_VARLINK_MESSAGE_MAX) {
        rc = ipc_varlink_feed(&r, piece, sizeof(piece));
        fed += sizeof(piece);
    }
    T_EQ(rc, IPC_VARLINK_E_TOO_BIG);
    T_LE(fed, IPC_VARLINK_MESSAGE_MAX + sizeof(piece));
    T_LE(r.size, 2 * IPC_VARLINK_MESSAGE_MAX);
    ipc_varlink_reader_deinit(&r);
}

static int parse(const char *text, struct ipc_varlink_call *c, json_t **m)
{
    *m = json_loads(text, 0, NULL);
    return ipc_varlink_parse_call(*m, c);
}

TEST(calls)
{
    static const char *const bad[] = {
        "{}", "{\"method\":1}", "{\"method\":\"a\",\"parameters\":[]}",
        "{\"method\":\"a\",\"more\":1}", "{\"method\":\"a\",\"oneway\":\"yes\"}"};
    struct ipc_varlink_call c;
    json_t *m;

    T_EQ(parse("{\"method\":\"io.piped.Status\",\"parameters\":{\"model\":\"x\"},\"more\":true}",
               &c, &m),
         0);
    T_STR(c.method, "io.piped.Status");
    T_STR(json_string_value(json_object_get(c.parameters, "model")), "x");
    T_TRUE(c.more && !c.oneway);
    json_decref(m);
    T_EQ(parse("{\"method\":\"a\",\"parameters\":null,\"oneway\":true,\"unknown\":3}", &c, &m), 0);
    T_TRUE(json_is_object(c.parameters) && !c.more && c.oneway);
    json_decref(m);
    T_EQ(parse("{\"method\":\"a\"}", &c, &m), 0);
    T_TRUE(json_is_object(c.parameters));
    json_decref(m);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_EQ(parse(bad[i], &c, &m), IPC_VARLINK_E_BAD_JSON);
        json_decref(m);
    }
}

TEST(envelopes)
{
    json_t *parameters = json_pack("{s:s}", "what", "a");
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    struct ipc_varlink_call c;
    char *bytes;
    size_t count;
    json_t *m;

    T_EQ(ipc_varlink_call("io.piped.Status", parameters, true, &bytes, &count), 0);
    T_EQ(bytes[count - 1], 0);
    T_EQ(strlen(bytes), count - 1);
    T_EQ(ipc_varlink_feed(&r, bytes, count), 0);
    free(bytes);
    T_EQ(ipc_varlink_next(&r, &m), 0);
    T_EQ(ipc_varlink_parse_call(m, &c), 0);
    T_STR(c.method, "io.piped.Status");
    T_TRUE(c.more);
    T_TRUE(json_equal(c.parameters, parameters));
    json_decref(m);

    T_EQ(ipc_varlink_reply(NULL, false, &bytes, &count), 0);
    T_STR(bytes, "{\"parameters\":{}}");
    free(bytes);
    T_EQ(ipc_varlink_reply(parameters, true, &bytes, &count), 0);
    T_STR(bytes, "{\"parameters\":{\"what\":\"a\"},\"continues\":true}");
    free(bytes);
    T_EQ(ipc_varlink_error("io.piped.NotFound", parameters, &bytes, &count), 0);
    T_STR(bytes, "{\"parameters\":{\"what\":\"a\"},\"error\":\"io.piped.NotFound\"}");
    free(bytes);
    T_EQ(parameters->refcount, 1);
    json_decref(parameters);
    ipc_varlink_reader_deinit(&r);
}

TEST(errors_in_words)
{
    json_t *why = json_pack("{s:s}", "why", "piped.json:1: log_level: ...");
    json_t *two = json_pack("{s:i, s:s, s:s}", "n", 3, "what", "a", "why", "b");
    const struct {
        const char *error;
        const json_t *parameters;
        size_t bytes;
        const char *text;
    } rows[] = {
        {"io.piped.NotStarted", why, 64,
         "the service failed to start: piped.json:1: log_level: ..."},
        {"io.piped.LoadFailed", why, 64, "LoadFailed: piped.json:1: log_level: ..."},
        {"io.piped.NotFound", two, 64, "NotFound: a, b"},
        {"io.piped.NotFound", two, 12, "NotFound: a"},
        {"io.piped.NotStarted", why, 12, "the service"},
        {"io.piped.Busy", NULL, 64, "Busy"},
        {NULL, two, 64, "the daemon refused: a, b"},
    };

    for (size_t i = 0; i < base_array_count(rows); i++) {
        char text[64];

        ipc_varlink_error_text(rows[i].error, rows[i].parameters, text, rows[i].bytes);
        T_STR(text, rows[i].text);
    }
    json_decref(why);
    json_decref(two);
}

TEST(interface_text)
{
    T_CONTAINS(ipc_varlink_interface, "\ninterface io.piped\n");
    T_CONTAINS(ipc_varlink_interface, "method Status(model: ?string) -> (status: object)\n");
    T_CONTAINS(ipc_varlink_interface, "error Unsupported(why: string)\n");
    T_CONTAINS(ipc_varlink_interface, "\"more\""); /* quotes survive the build */
}

TEST_MAIN()
