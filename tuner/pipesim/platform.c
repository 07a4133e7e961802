/* SPDX-License-Identifier: Apache-2.0 */
/* Described machines, and what a network costs on one. */

#include "tuner/pipesim/platform.h"
#include "base/base.h"

static const char *const LAYER_NAMES[] = {
    [PSIM_CONV] = "conv", [PSIM_DEPTHWISE] = "depthwise", [PSIM_FC] = "fc", [PSIM_OTHER] = "other"};

static void read_rates(struct tun_reader *r, const char *where, const json_t *ep,
                       struct psim_ep *ret)
{
    static const char *const keys[] = {"conv", "depthwise", "fc", "other", NULL};
    const json_t *gmacs = json_object_get(ep, "gmacs");
    char way[64];

    snprintf(way, sizeof(way), "%s.gmacs", where);
    if (!tun_read_keys(r, way, gmacs, keys)) {
        return;
    }
    for (size_t i = 0; i < base_array_count(LAYER_NAMES); i++) {
        ret->gmacs[i] = tun_read_positive(r, way, gmacs, LAYER_NAMES[i]);
    }
}

static void read_ep(struct tun_reader *r, const char *where, const json_t *json,
                    struct psim_ep *ret)
{
    static const char *const keys[] = {"name",       "cores",       "gmacs",  "serial", "gbytes",
                                       "gbytes_max", "overhead_ns", "watts?", NULL};

    if (!tun_read_keys(r, where, json, keys)) {
        return;
    }
    tun_read_ep(r, where, json, &ret->ep);
    read_rates(r, where, json, ret);
    ret->serial = tun_read_number(r, where, json, "serial", 0, 1);
    ret->gbytes = tun_read_positive(r, where, json, "gbytes");
    ret->gbytes_max = tun_read_positive(r, where, json, "gbytes_max");
    ret->overhead_ns = tun_read_positive(r, where, json, "overhead_ns");
    if (json_object_get(json, "watts")) {
        ret->ep.watts = tun_read_positive(r, where, json, "watts");
    }
}

/* Relative figures of the EPs, from their rates. */
static void relate(struct psim_platform *m)
{
    double gmacs = 0, gbytes = 0;

    for (size_t k = 0; k < m->ep_count; k++) {
        gmacs = base_max(gmacs, m->eps[k].gmacs[PSIM_CONV]);
        gbytes = base_max(gbytes, m->eps[k].gbytes);
    }
    for (size_t k = 0; k < m->ep_count; k++) {
        m->eps[k].ep.speed = m->eps[k].gmacs[PSIM_CONV] / gmacs;
        m->eps[k].ep.bandwidth = m->eps[k].gbytes / gbytes;
    }
}

/* Where the figures are from: for people, but it has to be there. */
static void read_source(struct tun_reader *r, const json_t *root)
{
    const json_t *source = json_object_get(root, "source");

    if (!json_is_array(source) || json_array_size(source) == 0) {
        tun_wrong(r, "source", "must be a list of strings that say where the figures are from");
    }
    for (size_t i = 0; i < json_array_size(source); i++) {
        if (!json_is_string(json_array_get(source, i))) {
            tun_wrong(r, "source", "entry %zu is not a string", i);
        }
    }
}

static void read_platform(struct tun_reader *r, const json_t *root, struct psim_platform *ret)
{
    static const char *const keys[] = {
        "title", "source", "kinds", "handoff_ns", "handoff_ns_per_byte", NULL};
    struct tun_ep plain[PL_EP_MAX];
    const json_t *eps;

    if (!tun_read_keys(r, "", root, keys) || !(eps = tun_read_eps(r, root))) {
        return;
    }
    snprintf(ret->title, sizeof(ret->title), "%s",
             tun_read_text(r, "", root, "title", sizeof(ret->title)));
    read_source(r, root);
    ret->ep_count = json_array_size(eps);
    for (size_t k = 0; k < ret->ep_count; k++) {
        char where[32];

        snprintf(where, sizeof(where), "kinds[%zu]", k);
        read_ep(r, where, json_array_get(eps, k), &ret->eps[k]);
        plain[k] = ret->eps[k].ep;
    }
    ret->handoff_ns = tun_read_positive(r, "", root, "handoff_ns");
    ret->handoff_ns_per_byte = tun_read_positive(r, "", root, "handoff_ns_per_byte");
    tun_read_distinct(r, plain, ret->ep_count);
}

static int load_file(const char *name, bool may_have_boards, char ret_error[PSIM_ERROR_MAX],
                     struct psim_platform *ret);

/* A link's figures: {ns, ns_per_byte}. */
static struct tun_link read_link(struct tun_reader *r, const char *where, const json_t *link)
{
    return (struct tun_link){.ns = tun_read_number(r, where, link, "ns", 0, 1e12),
                             .ns_per_byte = tun_read_number(r, where, link, "ns_per_byte", 0, 1e6)};
}

/* One entry of "boards": its EPs go behind those of the boards before it. */
static void read_board(struct tun_reader *r, const char *where, const json_t *json, size_t index,
                       struct psim_platform *ret)
{
    static const char *const keys[] = {"name",       "platform",    "memory_bytes?",
                                       "link_watts", "frames_held", NULL};
    struct tun_board *b = &ret->boards.boards[index];
    char why[PSIM_ERROR_MAX];
    struct psim_platform own;

    if (!tun_read_keys(r, where, json, keys)) {
        return;
    }
    snprintf(b->name, sizeof(b->name), "%s", tun_read_text(r, where, json, "name", 12));
    b->link_watts = tun_read_number(r, where, json, "link_watts", 0, 1e6);
    b->frames_held = tun_read_number(r, where, json, "frames_held", 1, 1024);
    if (json_object_get(json, "memory_bytes")) {
        b->memory_bytes = tun_read_positive(r, where, json, "memory_bytes");
    }
    if (r->error[0] ||
        load_file(tun_read_text(r, where, json, "platform", 64), false, why, &own) != 0) {
        tun_wrong(r, where, "platform: %.300s", why);
        return;
    }
    if (ret->ep_count + own.ep_count > PL_EP_MAX) {
        tun_wrong(r, where, "more than %u execution places in all", PL_EP_MAX);
        return;
    }
    for (size_t k = 0; k < own.ep_count; k++) {
        struct psim_ep *ep = &ret->eps[ret->ep_count++];

        *ep = own.eps[k];
        snprintf(ep->ep.name, sizeof(ep->ep.name), "%.15s:%.30s", b->name, own.eps[k].ep.name);
        ep->ep.board = (uint16_t)index;
    }
    ret->handoff_ns = base_max(ret->handoff_ns, own.handoff_ns);
    ret->handoff_ns_per_byte = base_max(ret->handoff_ns_per_byte, own.handoff_ns_per_byte);
}

static void read_boards(struct tun_reader *r, const json_t *root, struct psim_platform *ret)
{
    static const char *const keys[] = {"title", "source", "boards", "link", NULL};
    static const char *const link_keys[] = {"ns", "ns_per_byte", NULL};
    const json_t *list = json_object_get(root, "boards"), *link = json_object_get(root, "link");
    struct tun_ep plain[PL_EP_MAX];
    struct tun_link one;

    if (!tun_read_keys(r, "", root, keys) || !tun_read_keys(r, "link", link, link_keys)) {
        return;
    }
    if (!json_is_array(list) || json_array_size(list) < 2 ||
        json_array_size(list) > TUN_BOARD_MAX) {
        tun_wrong(r, "boards", "must be a list of 2 to %u boards", TUN_BOARD_MAX);
        return;
    }
    snprintf(ret->title, sizeof(ret->title), "%s",
             tun_read_text(r, "", root, "title", sizeof(ret->title)));
    read_source(r, root);
    one = read_link(r, "link", link);
    ret->boards.count = json_array_size(list);
    for (size_t b = 0; b < ret->boards.count && !r->error[0]; b++) {
        char where[32];

        snprintf(where, sizeof(where), "boards[%zu]", b);
        ret->boards.boards[b].port_ns_per_byte = one.ns_per_byte;
        read_board(r, where, json_array_get(list, b), b, ret);
        for (size_t other = 0; other < ret->boards.count; other++) {
            ret->boards.links[b][other] = other == b ? (struct tun_link){0} : one;
        }
    }
    for (size_t k = 0; k < ret->ep_count; k++) {
        plain[k] = ret->eps[k].ep;
    }
    tun_read_distinct(r, plain, ret->ep_count);
}

int psim_platform_load(const char *name, char ret_error[PSIM_ERROR_MAX], struct psim_platform *ret)
{
    return load_file(name, true, ret_error, ret);
}

static int load_file(const char *name, bool may_have_boards, char ret_error[PSIM_ERROR_MAX],
                     struct psim_platform *ret)
{
    char path[PSIM_PATH_MAX];
    struct tun_reader r = {.path = path, .error = ret_error};
    struct psim_platform m = {0};
    const char *slash = strrchr(name, '/');
    json_t *root;
    int error;

    ret_error[0] = '\0';
    error = psim_find(&psim_platforms, name, ret_error, path);
    if (error) {
        return error;
    }
    root = tun_read_file(&r);
    if (root) {
        if (may_have_boards && json_object_get(root, "boards")) {
            read_boards(&r, root, &m);
        } else {
            read_platform(&r, root, &m);
        }
        json_decref(root);
    }
    if (ret_error[0]) {
        return -EBADMSG;
    }
    snprintf(m.name, sizeof(m.name), "%.63s", slash ? slash + 1 : name);
    if (base_ends_with(m.name, ".json")) {
        m.name[strlen(m.name) - 5] = '\0';
    }
    relate(&m);
    *ret = m;
    return 0;
}

static double speed(const struct psim_ep *k, double width)
{
    return width / (1 + k->serial * (width - 1));
}

static double unit_ns(const struct psim_unit *u, const struct psim_ep *k, double width)
{
    double arithmetic = u->macs / (k->gmacs[u->layer] * speed(k, width));
    double memory = u->bytes / fmin(width * k->gbytes, k->gbytes_max);

    return k->overhead_ns + fmax(arithmetic, memory);
}

int psim_problem(const struct psim_network *n, const struct psim_platform *m,
                 struct tun_problem *ret)
{
    struct tun_ep eps[PL_EP_MAX];
    struct tun_problem p;
    int error;

    for (size_t k = 0; k < m->ep_count; k++) {
        eps[k] = m->eps[k].ep;
    }
    error = tun_problem_init(&p, n->unit_count, eps, m->ep_count);
    if (error) {
        return error;
    }
    p.handoff_ns = m->handoff_ns;
    p.handoff_ns_per_byte = m->handoff_ns_per_byte;
    p.boards = m->boards;
    p.boards.input_bytes = n->input_bytes;
    p.boards.output_bytes = n->output_bytes;
    for (size_t u = 0; u < n->unit_count; u++) {
        const struct psim_unit *from = &n->units[u];

        p.units[u] = (struct tun_unit){.weight = from->weight,
                                       .in_bytes = from->in_bytes,
                                       .gemm_n = from->gemm_n,
                                       .gemm_k = from->gemm_k,
                                       .gemm_m = from->gemm_m,
                                       .weight_bytes = from->weight_bytes,
                                       .arena_bytes = from->arena_bytes};
        for (size_t k = 0; k < m->ep_count; k++) {
            for (size_t w = 1; w <= eps[k].cores; w++) {
                *tun_cell_at(&p.costs, k, w, u) = (struct tun_cell){
                    .ns = unit_ns(from, &m->eps[k], (double)w), .source = TUN_MEASURED};
            }
        }
    }
    *ret = p;
    return 0;
}

int psim_case_init(const char *network, enum psim_counted counted, const char *platform,
                   char ret_error[PSIM_ERROR_MAX], struct psim_case *ret)
{
    struct psim_case c = PSIM_CASE_NULL;
    int error = psim_platform_load(platform, ret_error, &c.platform);

    error = error ? error : psim_network_load(network, counted, ret_error, &c.network);
    if (!error && (error = psim_problem(&c.network, &c.platform, &c.truth)) != 0) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.200s on %.200s: %s", network, platform,
                 strerror(-error));
        psim_network_deinit(&c.network);
    }
    if (!error) {
        *ret = c;
    }
    return error;
}

void psim_case_deinit(struct psim_case *c)
{
    tun_problem_deinit(&c->truth);
    psim_network_deinit(&c->network);
}
