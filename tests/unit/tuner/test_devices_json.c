/* SPDX-License-Identifier: Apache-2.0 */
/* AutoDiCE's mapping.json by devices: there and back, and what is refused. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/json/mapping_json.h"

static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f"};
#define UNITS 6u

static const struct tun_device DEVICES[] = {{"here", 4}, {"b2", 16}, {"b3", 0}};

/* The devices' indices as digits, or what is wrong. */
static const char *take(const char *json)
{
    static char text[UNITS + 1], error[TUN_READER_ERROR_MAX];
    struct tun_reader r = {.path = "mapping", .error = error};
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    uint16_t of[UNITS];

    error[0] = '\0';
    tun_devices_read(&r, root, DEVICES, base_array_count(DEVICES), NAMES, UNITS, of);
    json_decref(root);
    for (size_t u = 0; u < UNITS; u++) {
        text[u] = (char)('0' + of[u] % 10);
    }
    return error[0] ? error : text;
}

TEST(devices_there_and_back)
{
    static const uint16_t of[UNITS] = {0, 0, 1, 2, 2, 0};
    char error[TUN_ERROR_MAX];
    json_t *json = NULL;
    char *text;

    T_EQ(tun_devices_json(DEVICES, 3, of, NAMES, UNITS, error, &json), 0);
    text = json_dumps(json, JSON_COMPACT);
    T_STR(text, "{\"here_cpu0123\":[\"a\",\"b\",\"f\"],\"b2_cpu0123456789\":[\"c\"],"
                "\"b3_cpu0\":[\"d\",\"e\"]}");
    T_STR(take(text), "001220");
    free(text);
    json_decref(json);
    T_STR(take("{\"b3_arm9\": [\"f\", \"x\", \"e\"], \"here_cpu3\": [\"a\"], \"here_cpu20\": "
               "[\"b\"], \"b2_cpu9\": [\"c\", \"d\"]}"),
          "001122");
}

TEST(what_devices_cannot_say)
{
    static const struct tun_device odd[] = {{"b_2", 1}};
    static const uint16_t of[UNITS] = {0}, beyond[UNITS] = {1};
    char error[TUN_ERROR_MAX];
    json_t *json = NULL;

    T_EQ(tun_devices_json(odd, 1, of, NAMES, UNITS, error, &json), -EINVAL);
    T_CONTAINS(error, "underscore");
    T_EQ(tun_devices_json(DEVICES, 1, beyond, NAMES, UNITS, error, &json), -EINVAL);
}

TEST(hostile_devices)
{
    static const struct {
        const char *json, *why;
    } rows[] = {{"[]", "is not an object"},
                {"{}", "\"a\" is not mapped"},
                {"{\"b2_cpu0\": 7}", "is not a list"},
                {"{\"b2_cpu0\": [7]}", "entry 0 is not a string"},
                {"{\"b2_cpu0\": [\"a\", \"a\"]}", "mapped twice"},
                {"{\"b2_cpu0\": [\"a\"], \"b3_cpu0\": [\"a\"]}", "mapped twice"},
                {"{\"b9_cpu0\": [\"a\"]}", "no board is called \"b9\""},
                {"{\"b22_cpu0\": [\"a\"]}", "no board is called \"b22\""},
                {"{\"\": []}", "no board is called \"\""},
                {"{\"_cpu0\": []}", "no board is called \"\""},
                {"{\"b2\": []}", "piped computes on cores"},
                {"{\"b2_gpu\": []}", "piped computes on cores"},
                {"{\"b2_cpu\": []}", "different cores"},
                {"{\"b2_cpu00\": []}", "different cores"},
                {"{\"b2_cpu0x\": []}", "different cores"},
                {"{\"here_cpu4\": []}", "here has no core 4; its cores are 0 to 3"}};

    for (size_t i = 0; i < base_array_count(rows); i++) {
        T_CONTAINS(take(rows[i].json), rows[i].why);
    }
}

TEST_MAIN()
