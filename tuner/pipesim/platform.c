/* SPDX-License-Identifier: Apache-2.0 */
/* Described machines, and what a network costs on one. */

#include "base/base.h"
#include "tuner/pipesim/described.h"
#include "tuner/predict.h"

static const struct tun_field RATES[] = {
    {"conv", PSIM_CONV * sizeof(double), TUN_POSITIVE},
    {"depthwise", PSIM_DEPTHWISE * sizeof(double), TUN_POSITIVE},
    {"fc", PSIM_FC * sizeof(double), TUN_POSITIVE},
    {"other", PSIM_OTHER * sizeof(double), TUN_POSITIVE},
    {0}};
static const struct tun_field EP[] = {
    {"name", offsetof(struct psim_ep, ep.name), TUN_NAME, .most = PL_EP_NAME_MAX},
    {"cores", offsetof(struct psim_ep, ep.cores), TUN_SHORT, 1, PL_CPU_MAX},
    TUN_FIELD(struct psim_ep, serial, .most = 1),
    TUN_FIELD(struct psim_ep, gbytes, TUN_POSITIVE),
    TUN_FIELD(struct psim_ep, gbytes_max, TUN_POSITIVE),
    TUN_FIELD(struct psim_ep, overhead_ns, TUN_POSITIVE),
    {"watts", offsetof(struct psim_ep, ep.watts), TUN_POSITIVE, .optional = true},
    {0}};
static const struct tun_field BOARD[] = {
    TUN_FIELD(struct tun_board, name, TUN_TEXT, .most = 12),
    TUN_FIELD(struct tun_board, memory_bytes, TUN_POSITIVE, .optional = true),
    TUN_FIELD(struct tun_board, link_watts, .most = 1e6),
    TUN_FIELD(struct tun_board, frames_held, .least = 1, .most = 1024),
    {0}};
static const struct tun_field LINK[] = {TUN_FIELD(struct tun_link, ns, .most = 1e12),
                                        TUN_FIELD(struct tun_link, ns_per_byte, .most = 1e6),
                                        {0}};
static const struct tun_field WHOLE[] = {
    TUN_FIELD(struct psim_platform, handoff_ns, TUN_POSITIVE),
    TUN_FIELD(struct psim_platform, handoff_ns_per_byte, TUN_POSITIVE),
    TUN_FIELD(struct psim_platform, stages_max, TUN_COUNT, .most = PL_STAGE_MAX, .optional = true),
    TUN_FIELD(struct psim_platform, gbytes_max, TUN_POSITIVE, .optional = true),
    {0}};

static void read_ep(struct tun_reader *r, const char *where, const json_t *json,
                    struct psim_ep *ret)
{
    static const char *const keys[] = {"gmacs", NULL};
    char way[64];

    if (tun_read_object(r, where, json, keys, EP, ret)) {
        snprintf(way, sizeof(way), "%s.gmacs", where);
        tun_read_object(r, way, json_object_get(json, "gmacs"), NULL, RATES, ret->gmacs);
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
    static const char *const keys[] = {"title", "source", "kinds", NULL};
    const json_t *eps;

    if (!tun_read_object(r, "", root, keys, WHOLE, ret) ||
        !(eps = tun_read_list(r, root, "", "kinds", 1, PL_EP_MAX))) {
        return;
    }
    ret->ep_count = json_array_size(eps);
    for (size_t k = 0; k < ret->ep_count; k++) {
        char where[32];

        snprintf(where, sizeof(where), "kinds[%zu]", k);
        read_ep(r, where, json_array_get(eps, k), &ret->eps[k]);
    }
}

static int load_file(const char *name, bool may_have_boards, char ret_error[PSIM_ERROR_MAX],
                     struct psim_platform *ret);

/* One entry of "boards": its EPs go behind those of the boards before it. */
static void read_board(struct tun_reader *r, const char *where, const json_t *json, size_t index,
                       struct psim_platform *ret)
{
    static const char *const keys[] = {"platform", NULL};
    struct tun_board *b = &ret->boards.boards[index];
    char why[PSIM_ERROR_MAX];
    struct psim_platform own;

    if (!tun_read_object(r, where, json, keys, BOARD, b) ||
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
    const json_t *list = json_object_get(root, "boards");
    struct tun_link one;

    if (!tun_read_object(r, "", root, keys, NULL, NULL) ||
        !tun_read_object(r, "link", json_object_get(root, "link"), NULL, LINK, &one)) {
        return;
    }
    if (!json_is_array(list) || json_array_size(list) < 2 ||
        json_array_size(list) > TUN_BOARD_MAX) {
        tun_wrong(r, "boards", "must be a list of 2 to %u boards", TUN_BOARD_MAX);
        return;
    }
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
}

/* One board, or several where a description may have them. */
static void read_machine(struct tun_reader *r, const json_t *root, bool may_have_boards,
                         struct psim_platform *ret)
{
    struct tun_ep plain[PL_EP_MAX];

    if (may_have_boards && json_object_get(root, "boards")) {
        read_boards(r, root, ret);
    } else {
        read_platform(r, root, ret);
    }
    if (!r->error[0]) {
        snprintf(ret->title, sizeof(ret->title), "%s",
                 tun_read_text(r, "", root, "title", sizeof(ret->title)));
        read_source(r, root);
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
        read_machine(&r, root, may_have_boards, &m);
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

static double unit_ns(const struct psim_unit *u, const struct psim_ep *k, double width)
{
    double speed = width / (1 + k->serial * (width - 1));
    double arithmetic = u->macs / (k->gmacs[u->layer] * speed);
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
        eps[k].gbytes = m->gbytes_max > 0 ? m->eps[k].gbytes : 0;
        eps[k].gbytes_max = m->gbytes_max > 0 ? m->eps[k].gbytes_max : 0;
    }
    error = tun_problem_init(&p, n->unit_count, eps, m->ep_count);
    if (error) {
        return error;
    }
    p.handoff_ns = m->handoff_ns;
    p.handoff_ns_per_byte = m->handoff_ns_per_byte;
    p.bounds.stages_max = m->stages_max;
    p.gbytes_max = m->gbytes_max;
    p.boards = m->boards;
    p.boards.input_bytes = n->input_bytes;
    p.boards.output_bytes = n->output_bytes;
    for (size_t u = 0; u < n->unit_count; u++) {
        const struct psim_unit *from = &n->units[u];

        p.units[u] = from->of;
        p.units[u].bytes = m->gbytes_max > 0 ? from->bytes : 0;
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

/* ---- Pipe-it's micro-benchmarks on a described machine ---- */

#define BENCHES (900u + 40u + 60u) /* for each width */

/* The benchmark @i of an EP: convolutions; 20 sizes of fully connected layers with 1000 and 4096
 * neurons; depthwise layers with two filters. */
static struct tun_bench bench(const struct psim_ep *on, size_t i, size_t width)
{
    static const double images[] = {7, 14, 28, 56, 112}, filters[] = {1, 3, 5, 7, 11};
    static const double channels[] = {32, 64, 92, 128, 192, 256};
    enum psim_layer layer = i < 900 ? PSIM_CONV : i < 940 ? PSIM_FC : PSIM_DEPTHWISE;
    double image = images[i % 5], filter = filters[i / 5 % 5];
    double in = channels[i / 25 % 6], out = channels[i / 150 % 6], n, k;

    if (layer == PSIM_FC) {
        image = filter = 1;
        in = 256.0 * (double)(1 + i % 20);
        out = i < 920 ? 1000 : 4096;
    } else if (layer == PSIM_DEPTHWISE) {
        filter = filters[1 + i / 5 % 2];
        in = out = channels[(i - 940) / 10];
    }
    n = image * image;
    k = filter * filter * (layer == PSIM_DEPTHWISE ? 1 : in);
    return (struct tun_bench){
        .n = n,
        .k = k,
        .m = out,
        .width = (uint16_t)width,
        .ns = unit_ns(&(struct psim_unit){.layer = layer,
                                          .macs = n * k * out,
                                          .bytes = sizeof(float) * (n * in + k * out + n * out)},
                      on, (double)width),
        .layer = tun_layer_of_conv((size_t)(filter * filter), false, layer == PSIM_DEPTHWISE)};
}

int psim_predict(const struct psim_platform *m, struct tun_problem *p)
{
    base_autofree struct tun_bench *benches = calloc(BENCHES * PL_CPU_MAX, sizeof(*benches));
    struct tun_predictor predictor;

    for (size_t k = 0; benches && k < p->ep_count; k++) {
        size_t count = BENCHES * p->eps[k].cores;

        for (size_t i = 0; i < count; i++) {
            benches[i] = bench(&m->eps[k], i % BENCHES, 1 + i / BENCHES);
        }
        tun_predictor_fit(benches, count, &predictor);
        for (size_t i = 0; i < p->eps[k].cores * p->unit_count; i++) { /* may be overwritten */
            tun_cell_at(&p->costs, k, 1 + i / p->unit_count, i % p->unit_count)->source =
                TUN_PREDICTED;
        }
        tun_predict_costs(p, k, &predictor);
    }
    return benches ? 0 : -ENOMEM;
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
