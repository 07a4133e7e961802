/* SPDX-License-Identifier: Apache-2.0 */
/* States, reports and routes: what is written is read again; what is wrong is refused. */
#include "ipc/boards/board_state.h"
#include "tests/harness.h"

#define MUTATIONS 20000

static const char a[] = "0123456789abcdef", b[] = "fedcba9876543210";

static void fill_state(struct brd_state *s, const char *print)
{
    struct brd_costs *c = calloc(BRD_COSTS_MAX, sizeof(*c));

    *s = (struct brd_state){.known = true, .version = "0.1", .memory_bytes = 2e9};
    strcpy(s->print, print);
    s->ep[s->ep_count++] = (struct brd_ep){"big", 4, 1, 2.4e6, 1024};
    s->ep[s->ep_count++] = (struct brd_ep){"little", 2, 0.4, 0, 0};
    s->way[s->way_count++] =
        (struct brd_way){.up = true, .measured = true, .ns = 1e5, .ns_per_byte = 8.5};
    strcpy(s->way[0].print, b);
    *c = (struct brd_costs){.content = "net-01234567", .first_unit = 3, .unit_count = 2};
    c->row[c->row_count++] = (struct brd_cost_row){.ep = 1, .width = 2, .units = 2};
    c->row[0].ns = malloc(2 * sizeof(double));
    c->row[0].ns[0] = 12345.5;
    c->row[0].ns[1] = 0;
    s->costs = c;
    s->costs_count = 1;
}

static json_t *a_report(void)
{
    struct brd_link_report_all *r = calloc(1, sizeof(*r));
    json_t *ret;

    fill_state(&r->self, a);
    fill_state(&r->board[r->board_count++], b);
    strcpy(r->board[0].name, "b2");
    r->board[0].up = true;
    r->route[r->route_count++] = (struct brd_route_state){
        .model = "net", .number = 7, .phase = BRD_FAILED, .why = "b2 is gone", .answered = 5};
    strcpy(r->route[0].board, b);
    ret = brd_report_all_json(r);
    brd_report_all_deinit(r);
    free(r);
    return ret;
}

static void fill_route(struct brd_route *r)
{
    *r = (struct brd_route){.model = "net",
                            .content = "net-01234567",
                            .number = 9,
                            .path = "/m/net.onnx",
                            .hop_count = 2,
                            .input_count = 1,
                            .output_count = 1};
    memset(r->identity, 'a', 64);
    r->hop[0] =
        (struct brd_hop){.first_unit = 0, .last_unit = 4, .board_count = 1, .leaves = "0-3,7"};
    r->hop[1] = (struct brd_hop){.first_unit = 5, .last_unit = 9, .board_count = 2};
    memset(r->hop[0].border, 'b', 64);
    strcpy(r->hop[0].primitives, "00c0ffee00c0ffee conv__a,copy__b 0:51200 1");
    strcpy(r->hop[0].board[0].print, a);
    strcpy(r->hop[1].board[0].print, a);
    strcpy(r->hop[1].board[1].print, b);
    r->hop[0].board[0].share = r->hop[1].board[0].share = 1;
    r->hop[1].board[1].share = 1000;
    r->input[0] = (struct brd_tensor){1, 4, {1, 3, 8, 8}, 768};
    r->output[0] = (struct brd_tensor){1, 2, {1, 10}, 40};
}

static json_t *some_routes(void)
{
    struct brd_routes *r = calloc(1, sizeof(*r));
    json_t *ret;

    fill_route(&r->route[r->count++]);
    ret = brd_routes_json(r);
    free(r);
    return ret;
}

/* Reads as what it is and writes it again. Return: a new reference; NULL: refused. */
static json_t *again_report(const json_t *j)
{
    struct brd_link_report_all *r = calloc(1, sizeof(*r));
    json_t *ret = brd_report_all_read(j, r) == 0 ? brd_report_all_json(r) : NULL;

    brd_report_all_deinit(r);
    free(r);
    return ret;
}

static json_t *again_routes(const json_t *j)
{
    struct brd_routes *r = calloc(1, sizeof(*r));
    json_t *ret = brd_routes_read(j, r) == 0 ? brd_routes_json(r) : NULL;

    free(r);
    return ret;
}

TEST(what_is_written_is_read)
{
    json_t *report = a_report(), *routes = some_routes();
    json_t *report_2 = again_report(report), *routes_2 = again_routes(routes);

    T_TRUE(report_2 && json_equal(report, report_2));
    T_TRUE(routes_2 && json_equal(routes, routes_2));
    json_decref(report);
    json_decref(routes);
    json_decref(report_2);
    json_decref(routes_2);
}

static json_t *odd_value(uint64_t *seed)
{
    switch (base_splitmix64(seed) % 9) {
    case 0:
        return json_null();
    case 1:
        return json_integer(-1);
    case 2:
        return json_real(1e300);
    case 3:
        return json_string("");
    case 4:
        return json_stringn_nocheck("0123456789abcde\0", 16);
    case 5:
        return json_array();
    case 6:
        return json_object();
    case 7:
        return json_integer(INT64_MAX);
    default:
        return json_true();
    }
}

/* Puts one odd value somewhere in @j. */
static void spoil(json_t *j, uint64_t *seed)
{
    size_t n = json_is_object(j) ? json_object_size(j) : json_array_size(j), at;
    void *key;
    json_t *v;

    if (n == 0) {
        return;
    }
    at = base_splitmix64(seed) % n;
    key = json_is_object(j) ? json_object_iter(j) : NULL;
    for (size_t i = 0; key && i < at; i++) {
        key = json_object_iter_next(j, key);
    }
    v = key ? json_object_iter_value(key) : json_array_get(j, at);
    if ((json_is_object(v) || json_is_array(v)) && base_splitmix64(seed) % 8) {
        spoil(v, seed);
    } else if (key) {
        json_object_iter_set_new(j, key, odd_value(seed));
    } else if (base_splitmix64(seed) % 2) {
        json_array_append(j, v);
    } else {
        json_array_set_new(j, at, odd_value(seed));
    }
}

/* What is taken of spoilt text is the same when it is written and read once more. */
static void spoil_many(json_t *(*make)(void), json_t *(*again)(const json_t *), uint64_t seed)
{
    int taken = 0, count = t_times(MUTATIONS);

    for (int i = 0; i < count; i++) {
        json_t *j = make(), *once, *twice;

        spoil(j, &seed);
        once = again(j);
        twice = once ? again(once) : NULL;
        T_TRUE(!once || (twice && json_equal(once, twice)));
        taken += once != NULL;
        json_decref(j);
        json_decref(once);
        json_decref(twice);
    }
    T_TRUE(taken > 0 && taken < count);
}

TEST(spoilt_reports)
{
    spoil_many(a_report, again_report, 1);
}

TEST(spoilt_routes)
{
    spoil_many(some_routes, again_routes, 2);
}

/* Many costs of many boards: the newest that fit are told. */
static void fill_costs(struct brd_state *s, const char *print)
{
    fill_state(s, print);
    while (s->costs_count < BRD_COSTS_MAX) {
        struct brd_costs *c = &s->costs[s->costs_count];

        strcpy(c->content, "net-01234567");
        c->first_unit = (uint32_t)s->costs_count * 100;
        c->unit_count = 1000;
        for (size_t i = 0; i < 4; i++) {
            c->row[i] = (struct brd_cost_row){.ep = 0, .width = (uint32_t)i + 1, .units = 1000};
            c->row[i].ns = malloc(c->unit_count * sizeof(double));
            for (size_t u = 0; u < c->unit_count; u++) {
                c->row[i].ns[u] = 1e6 * (1 + t_float());
            }
            c->row_count++;
        }
        s->costs_count++;
    }
}

TEST(long_states_leave_costs_out)
{
    struct brd_state s, back = {0};
    json_t *j;

    fill_costs(&s, a);
    j = brd_state_json_within(&s, SIZE_MAX);
    T_EQ(json_array_size(json_object_get(j, "costs")), BRD_COSTS_MAX);
    T_TRUE(json_dumpb(j, NULL, 0, JSON_COMPACT) > BRD_STATE_TEXT_MAX);
    json_decref(j);
    j = brd_state_json_within(&s, BRD_STATE_TEXT_MAX);
    T_TRUE(json_dumpb(j, NULL, 0, JSON_COMPACT) <= BRD_STATE_TEXT_MAX);
    T_EQ(brd_state_read(j, &back), 0);
    T_TRUE(back.costs_count > 0 && back.costs_count < BRD_COSTS_MAX);
    for (size_t i = 1; i <= back.costs_count; i++) {
        T_EQ(back.costs[back.costs_count - i].first_unit, s.costs[s.costs_count - i].first_unit);
    }
    json_decref(j);
    brd_state_deinit(&back);
    j = brd_state_json_within(&s, 1);
    T_EQ(json_array_size(json_object_get(j, "costs")), 0);
    T_TRUE(json_dumpb(j, NULL, 0, JSON_COMPACT) < 4096);
    json_decref(j);
    T_EQ(s.costs_count, BRD_COSTS_MAX);
    brd_state_deinit(&s);
}

TEST(long_reports_leave_costs_out)
{
    struct brd_link_report_all *r = calloc(1, sizeof(*r)), *back = calloc(1, sizeof(*back));
    json_t *j;

    fill_costs(&r->self, a);
    for (size_t i = 0; i < BRD_MAX; i++) {
        char print[BRD_FINGERPRINT_BYTES];

        snprintf(print, sizeof(print), "%016zx", i);
        fill_costs(&r->board[r->board_count], print);
        snprintf(r->board[r->board_count++].name, BRD_NAME_BYTES, "b%zu", i);
    }
    j = brd_report_all_json_within(r, 2 << 20);
    T_TRUE(json_dumpb(j, NULL, 0, JSON_COMPACT) <= 2 << 20);
    T_EQ(brd_report_all_read(j, back), 0);
    T_EQ(back->board_count, BRD_MAX);
    T_TRUE(back->self.costs_count == 1);
    for (size_t i = 0; i < BRD_MAX; i++) {
        T_EQ(back->board[i].costs_count, back->self.costs_count);
        T_EQ(back->board[i].way_count, 1);
    }
    json_decref(j);
    brd_report_all_deinit(r);
    brd_report_all_deinit(back);
    free(r);
    free(back);
}

TEST(hops_as_text)
{
    static const char *const bad[] = {
        "",
        "0-4",
        "0-4@",
        "0-4@b2*1",
        "1-4@0123456789abcdef*1",
        "0-4@0123456789abcdef",
        "0-4@0123456789abcdef*0",
        "0-4@0123456789abcdef*1001",
        "0-4@0123456789abcdef*01",
        "4-0@0123456789abcdef*1",
        "0-4@0123456789abcdef*1|",
        "0-4@0123456789abcdef*1|6-7@0123456789abcdef*1",
        "0-4@0123456789abcdef*1+0123456789abcdef*1",
        "0-4@0123456789abcdef*1 ",
        "0-4@0123456789ABCDEF*1",
        "0-4@0123456789abcdef*1:f16",
    };
    struct brd_route *r = calloc(1, sizeof(*r));
    struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    char text[512], text_2[512];
    size_t count;

    fill_route(r);
    T_EQ(brd_hops_text(r->hop, r->hop_count, text, sizeof(text)), 0);
    T_STR(text, "0-4@0123456789abcdef*1|5-9@0123456789abcdef*1+fedcba9876543210*1000");
    T_EQ(brd_hops_parse(text, hop, &count), 0);
    T_EQ(count, 2);
    T_EQ(brd_hops_text(hop, count, text_2, sizeof(text_2)), 0);
    T_STR(text_2, text);
    T_EQ(brd_hops_text(r->hop, r->hop_count, text_2, strlen(text)), -ENOSPC);
    for (size_t i = 0; i < base_array_count(bad); i++) {
        T_EQ(brd_hops_parse(bad[i], hop, &count), -EBADMSG);
    }
    free(hop);
    free(r);
}

TEST_MAIN()
