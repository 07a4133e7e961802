/* SPDX-License-Identifier: Apache-2.0 */
/* What boards, files and people say about boards, any bytes: what is accepted is written again as
 * the same. The first byte chooses the reader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/link/weights/fetch_private.h"
#include "base/base.h"
#include "base/leaves/leaves.h"
#include "daemon/config/config.h"
#include "ipc/boards/board_state.h"
#include "tests/fuzz/replay.h"
#include "tuner/json/mapping_json.h"

#define UNITS 4u
#define LEAVES 64u
static const char *const names[UNITS] = {"a", "b", "c", "d"};

static void state(json_t *j)
{
    struct brd_state s = {0}, again = {0};
    json_t *k, *l;

    if (brd_state_read(j, &s) == 0) {
        MUST(s.ep_count <= BRD_EPS_MAX && s.way_count <= BRD_MAX && s.costs_count <= BRD_COSTS_MAX);
        k = brd_state_json(&s);
        MUST(k && brd_state_read(k, &again) == 0);
        l = brd_state_json_within(&again, BRD_STATE_TEXT_MAX);
        MUST(l && json_equal(k, l));
        json_decref(l);
        json_decref(k);
        brd_state_deinit(&again);
    }
    brd_state_deinit(&s);
}

static void report(json_t *j)
{
    struct brd_link_report_all *r = calloc(2, sizeof(*r));
    json_t *k, *l;

    MUST(r);
    if (brd_report_all_read(j, &r[0]) == 0) {
        k = brd_report_all_json(&r[0]);
        MUST(k && brd_report_all_read(k, &r[1]) == 0);
        l = brd_report_all_json(&r[1]);
        MUST(l && json_equal(k, l));
        json_decref(l);
        json_decref(k);
    }
    brd_report_all_deinit(&r[0]);
    brd_report_all_deinit(&r[1]);
    free(r);
}

static void routes(json_t *j)
{
    struct brd_routes *r = calloc(2, sizeof(*r));
    json_t *k;

    MUST(r);
    if (brd_routes_read(j, &r[0]) == 0) {
        k = brd_routes_json(&r[0]);
        MUST(k && brd_routes_read(k, &r[1]) == 0);
        MUST(memcmp(&r[0], &r[1], sizeof(r[0])) == 0);
        json_decref(k);
    }
    free(r);
}

/* AutoDiCE's mapping.json, of one board's places and of boards. */
static void mapping(json_t *j)
{
    static const struct tun_ep eps[] = {
        {.name = "big", .cores = 4, .speed = 1, .bandwidth = 1},
        {.name = "gpu", .cores = 1, .speed = 1, .bandwidth = 1},
    };
    static const struct tun_device devices[] = {{"here", 4}, {"b2", 0}};
    char error[TUN_READER_ERROR_MAX] = "", text[PL_PLAN_TEXT_MAX];
    struct tun_reader r = {"mapping.json", error};
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct pl_plan plan;
    struct pl_ep_set set;
    uint16_t of[UNITS];
    json_t *k = NULL;

    MUST(tun_problem_init(&p, UNITS, eps, base_array_count(eps)) == 0);
    tun_eps(&p, &set);
    tun_mapping_read(&r, j, &p, names, &plan);
    if (!*error) {
        MUST(pl_plan_check(&plan, &set, UNITS, error, sizeof(error)) == 0);
        MUST(pl_plan_format(&plan, &set, text, sizeof(text)) == 0);
        MUST(tun_mapping_json(&p, &plan, names, error, &k) == 0);
        json_decref(k);
    }
    tun_problem_deinit(&p);
    *error = '\0';
    tun_devices_read(&r, j, devices, base_array_count(devices), names, UNITS, of);
    for (size_t u = 0; u < UNITS && !*error; u++) {
        MUST(of[u] < base_array_count(devices));
    }
}

static void json(int kind, const uint8_t *data, size_t bytes)
{
    json_t *j = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, NULL);

    if (j && kind == 0) {
        state(j);
    } else if (j && kind == 1) {
        report(j);
    } else if (j && kind == 2) {
        routes(j);
    } else if (j) {
        mapping(j);
    }
    json_decref(j);
}

static void hops(const char *text)
{
    struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    char *again = malloc(strlen(text) + 1);
    size_t count;

    MUST(hop && again);
    if (brd_hops_parse(text, hop, &count) == 0) {
        MUST(brd_hops_text(hop, count, again, strlen(text) + 1) == 0 && strcmp(again, text) == 0);
    }
    free(again);
    free(hop);
}

static void plan(const char *text)
{
    static const struct pl_ep_set eps = {
        .count = 2, .eps = {{.name = "big", .cpu_count = 4}, {.name = "little", .cpu_count = 2}}};
    char why[256], again[PL_PLAN_TEXT_MAX];
    struct dmn_route_text route;
    struct pl_plan p;

    if (pl_plan_parse(text, &eps, UNITS, why, sizeof(why), &p) == 0) {
        MUST(pl_plan_format(&p, &eps, again, sizeof(again)) == 0);
        MUST(pl_plan_parse(again, &eps, UNITS, why, sizeof(why), &p) == 0);
    }
    if (dmn_route_text_parse(text, why, &route) == 0) {
        uint32_t next = 0;

        MUST(route.hop_count > 0 && route.hop_count <= DMN_ROUTE_HOPS_MAX);
        for (size_t i = 0; i < route.hop_count; i++) {
            MUST(route.hop[i].first_unit == next && route.hop[i].last_unit >= next);
            MUST(route.hop[i].board_count > 0 && route.hop[i].board_count <= DMN_ROUTE_BOARDS_MAX);
            next = route.hop[i].last_unit + 1;
        }
    } else {
        MUST(*why && strlen(why) < DMN_ROUTE_ERROR_MAX);
    }
}

static void leaves(const uint8_t *data, size_t bytes)
{
    struct mdl_leaves l;
    unsigned char *again;

    if (mdl_leaves_read(data, bytes, &l) == 0) {
        MUST(mdl_leaves_bytes(&l) == bytes);
        again = malloc(bytes);
        MUST(again);
        mdl_leaves_write(&l, again);
        MUST(memcmp(again, data, bytes) == 0);
        for (size_t i = 0; i < l.count; i++) {
            MUST(mdl_leaf_bytes(&l, i) > 0 || l.file_bytes == 0);
        }
        free(again);
        mdl_leaves_deinit(&l);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int kind = bytes ? data[0] % 8 : 0;
    bool needed[LEAVES];
    char *text;

    if (bytes == 0) {
        return 0;
    }
    data++;
    bytes--;
    if (kind < 4) {
        json(kind, data, bytes);
        return 0;
    }
    text = malloc(bytes + 1);
    MUST(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (kind == 4) {
        hops(text);
    } else if (kind == 5) {
        plan(text);
    } else if (kind == 6) {
        leaves(data, bytes);
    } else {
        MUST(!fetch_read_leaves(text, LEAVES, needed) || fetch_read_leaves(text, SIZE_MAX, NULL));
    }
    free(text);
    return 0;
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
#define STATE                                                                                      \
    "{\"board\": \"0011223344556677\", \"name\": \"b2\", \"up\": true, \"known\": true, "          \
    "\"version\": \"0.1.0\", \"memory_bytes\": 1e9, \"eps\": [{\"name\": \"big\", \"cores\": 4, "  \
    "\"speed\": 1.0, \"max_khz\": 2e6, \"capacity\": 1024.0}], \"links\": [{\"board\": "           \
    "\"8899aabbccddeeff\", \"up\": true, \"ns\": 1e5, \"ns_per_byte\": 8.5}], \"costs\": "         \
    "[{\"content\": \"a-12345678\", \"first_unit\": 2, \"units\": 2, \"rows\": [{\"ep\": 0, "      \
    "\"width\": 2, \"ns\": [1e6, null]}]}]}"
#define TENSORS "[{\"dtype\": 1, \"dims\": [1, 3], \"bytes\": 12}]"
    static const char *const seeds[] = {
        "\0" STATE,
        "\1{\"self\": " STATE ", \"boards\": [" STATE "], \"routes\": [{\"model\": \"a\", "
        "\"number\": 7, \"phase\": \"failed\", \"why\": \"b2 is gone\", \"board\": "
        "\"0011223344556677\", \"to\": \"\", \"frames\": 9, \"answered\": 5, \"resent\": 1, "
        "\"late\": 0, \"service_ns\": [1e6, 2e6]}]}",
        "\2{\"routes\": [{\"model\": \"a\", \"content\": \"a-12345678\", \"number\": 3, "
        "\"identity\": \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\", "
        "\"path\": \"/m/a.onnx\", \"hops\": [{\"first_unit\": 0, \"last_unit\": 2, "
        "\"leaves\": \"0-3,7\", \"boards\": [{\"board\": \"0011223344556677\", "
        "\"share\": 2}, {\"board\": \"8899aabbccddeeff\", \"share\": 1}]}, {\"first_unit\": 3, "
        "\"last_unit\": 5, \"boards\": [{\"board\": \"0011223344556677\", \"share\": 1}]}], "
        "\"inputs\": " TENSORS ", \"outputs\": " TENSORS "}]}",
        "\3{\"here_cpu01\": [\"a\", \"b\"], \"here_gpu\": [\"c\", \"d\"]}",
        "\3{\"b2_cpu0123\": [\"a\", \"x\"], \"here_arm0\": [\"b\", \"c\"], \"b2_gpu\": [\"d\"]}",
        "\0040-2@0011223344556677*2+8899aabbccddeeff*1|3-5@0011223344556677*1000",
        "\0050-1@bigx4*1|2-3@littlex2*1",
        "\0050-16@here*2+b2|17-44@b3*1000",
        "\6\0\0\x10\0\0\0\0\0abcdefghijklmnopqrstuvwxyz012345",
        "\0070-3,7,9-63",
    };
    /* Those that begin with, or have, a byte 0 do not end there. */
    static const size_t sizes[] = {[0] = sizeof("\0" STATE) - 1, [8] = 1 + 8 + 32};
    size_t bytes;

    if (index >= base_array_count(seeds)) {
        return 0;
    }
    bytes = index < base_array_count(sizes) && sizes[index] ? sizes[index] : strlen(seeds[index]);
    MUST(bytes <= cap);
    memcpy(data, seeds[index], bytes);
    return bytes;
}
