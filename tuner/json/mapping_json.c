/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/mapping_json.h"

#include "base/base.h"

#define DIGITS 10u /* cores that a key can name */
#define KEY_MAX 96u
#define UNMAPPED UINT16_MAX /* each byte 0xff */

static bool is_gpu(const struct tun_ep *ep)
{
    return strstr(ep->name, "gpu") != NULL;
}

static bool same_board(const struct tun_problem *p, size_t a, size_t b)
{
    return p->boards.count <= 1 || p->eps[a].board == p->eps[b].board;
}

/* The number of an EP's first core on its board. */
static size_t first_core(const struct tun_problem *p, size_t ep)
{
    size_t core = 0;

    for (size_t k = 0; k < ep; k++) {
        core += same_board(p, k, ep) && !is_gpu(&p->eps[k]) ? p->eps[k].cores : 0;
    }
    return core;
}

/* @used: cores of the EP that teams before have. */
static int write_key(const struct tun_problem *p, const struct pl_group *group, size_t used,
                     char *ret_error, char ret[KEY_MAX])
{
    const struct tun_ep *ep = &p->eps[group->ep];
    const char *device = p->boards.count > 1 ? p->boards.boards[ep->board].name : "host";
    size_t core = first_core(p, group->ep) + used;

    if (strchr(device, '_')) {
        snprintf(ret_error, TUN_ERROR_MAX, "the board's name \"%.24s\" has an underscore", device);
        return -EINVAL;
    }
    if (is_gpu(ep)) {
        snprintf(ret, KEY_MAX, "%.24s_gpu", device);
    } else if (core + group->width > DIGITS) {
        snprintf(ret_error, TUN_ERROR_MAX, "a mapping cannot name core %zu of \"%.24s\"",
                 core + group->width - 1, device);
        return -EINVAL;
    } else {
        snprintf(ret, KEY_MAX, "%.24s_cpu", device);
        for (size_t i = 0; i < group->width; i++) {
            base_append(ret, KEY_MAX, "%zu", core + i);
        }
    }
    if (group->more > 0) {
        base_append(ret, KEY_MAX, "/%zu", pl_group_batch(group));
    }
    return 0;
}

/* The layers of @key, none yet if it is new. Return: borrowed; NULL: out of memory. */
static json_t *layers_of(json_t *root, const char *key)
{
    json_t *layers = json_object_get(root, key);

    if (!layers && json_object_set_new(root, key, json_array()) == 0) {
        layers = json_object_get(root, key);
    }
    return layers;
}

int tun_mapping_json(const struct tun_problem *p, const struct pl_plan *plan, tun_unit_names names,
                     char ret_error[TUN_ERROR_MAX], json_t **ret)
{
    json_t *root = json_object();
    size_t used[PL_EP_MAX] = {0};
    int error = root ? 0 : -ENOMEM;

    ret_error[0] = '\0';
    for (size_t s = 0; !error && s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        const struct pl_group *group = &stage->groups[0];
        json_t *layers = NULL;
        char key[KEY_MAX];

        if (stage->group_count != 1 || group->count != 1) {
            snprintf(ret_error, TUN_ERROR_MAX, "stage %zu has several teams; a mapping has one", s);
            error = -EINVAL;
        } else {
            if (used[group->ep] + group->width > p->eps[group->ep].cores) {
                used[group->ep] = 0; /* it comes back to cores that it left */
            }
            error = write_key(p, group, used[group->ep], ret_error, key);
            layers = error ? NULL : layers_of(root, key);
            error = error ? error : layers ? 0 : -ENOMEM;
        }
        for (size_t u = stage->first_unit; !error && u <= stage->last_unit; u++) {
            error = json_array_append_new(layers, json_string(names[u])) ? -ENOMEM : 0;
        }
        used[group->ep] += error ? 0 : group->width;
    }
    if (error) {
        json_decref(root);
        return error;
    }
    *ret = root;
    return 0;
}

/* ---- reading ---- */

/* Is it an EP of the device? */
static bool is_on(const struct tun_problem *p, size_t ep, const char *device, size_t length)
{
    const char *name;

    if (p->boards.count <= 1) {
        return true;
    }
    name = p->boards.boards[p->eps[ep].board].name;
    return strlen(name) == length && strncmp(name, device, length) == 0;
}

static bool read_gpu(const struct tun_problem *p, const char *device, size_t length,
                     struct tun_mapping_place *ret)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        if (is_gpu(&p->eps[k]) && is_on(p, k, device, length)) {
            *ret = (struct tun_mapping_place){
                .team = {.ep = (uint16_t)k, .width = p->eps[k].cores, .count = 1}};
            return true;
        }
    }
    return false;
}

/* The EP that has all of these cores. */
static bool read_cores(const struct tun_problem *p, const char *device, size_t length,
                       const char *digits, struct tun_mapping_place *ret)
{
    uint32_t cores = 0;
    uint16_t width = 0;

    for (; *digits >= '0' && *digits <= '9'; digits++, width++) {
        uint32_t bit = UINT32_C(1) << (*digits - '0');

        if (cores & bit) {
            return false;
        }
        cores |= bit;
    }
    if (*digits || width == 0) {
        return false;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        size_t first = first_core(p, k), end = first + p->eps[k].cores;
        uint32_t own = 0;

        for (size_t c = first; c < base_min(end, (size_t)DIGITS); c++) {
            own |= UINT32_C(1) << c;
        }
        if (!is_gpu(&p->eps[k]) && is_on(p, k, device, length) && (cores & own) == cores) {
            *ret = (struct tun_mapping_place){
                .team = {.ep = (uint16_t)k, .width = width, .count = 1}, .cores = cores};
            return true;
        }
    }
    return false;
}

/* Takes "/4" off the end of a key. Return: how many frames at once; 0: it is not valid. */
static size_t read_batch(char *key)
{
    char *slash = strchr(key, '/');
    size_t frames = 1;

    if (slash) {
        frames = slash[1] >= '2' && slash[1] <= '9' && !slash[2] ? (size_t)(slash[1] - '0') : 0;
        *slash = '\0';
    }
    return frames <= PL_BATCH_MAX ? frames : 0;
}

static bool read_key(struct tun_reader *r, const char *text, const struct tun_problem *p,
                     struct tun_mapping_place *ret)
{
    char key[KEY_MAX];
    size_t frames;
    const char *bar;
    size_t length;
    bool found = false;

    snprintf(key, sizeof(key), "%s", text);
    frames = read_batch(key);
    bar = strchr(key, '_');
    length = bar && frames > 0 && strlen(text) < sizeof(key) ? (size_t)(bar - key) : 0;
    if (length > 0 && strcmp(bar + 1, "gpu") == 0) {
        found = read_gpu(p, key, length, ret);
    } else if (length > 0 && (strncmp(bar + 1, "cpu", 3) == 0 || strncmp(bar + 1, "arm", 3) == 0)) {
        found = read_cores(p, key, length, bar + 4, ret);
    }
    if (!found) {
        char where[64];

        snprintf(where, sizeof(where), "%.60s", text);
        tun_wrong(r, where, "is not BOARD_gpu or BOARD_cpuCORES with cores of one execution place");
        return false;
    }
    ret->team.more = (uint16_t)(frames - 1);
    return true;
}

/* Sets @ret[u] to @to for each unit that the list @layers names. @key: of the list. @ret:
 * UNMAPPED: no key has named it yet. */
static void read_layers(struct tun_reader *r, const char *key, const json_t *layers, uint16_t to,
                        tun_unit_names names, size_t unit_count, uint16_t *ret)
{
    const json_t *layer;
    char where[64];
    size_t i;

    snprintf(where, sizeof(where), "%.60s", key);
    if (!json_is_array(layers)) {
        tun_wrong(r, where, "is not a list of layers");
        return;
    }
    json_array_foreach(layers, i, layer)
    {
        const char *name = json_string_value(layer);

        if (!name) {
            tun_wrong(r, where, "entry %zu is not a string", i);
            return;
        }
        for (size_t u = 0; u < unit_count; u++) {
            if (strcmp(names[u], name) != 0) {
                continue;
            }
            if (ret[u] != UNMAPPED) {
                tun_wrong(r, where, "layer \"%.60s\" is mapped twice", name);
                return;
            }
            ret[u] = to;
        }
    }
}

/* Return: every unit is mapped; false: @r has the first that is not. */
static bool is_whole(struct tun_reader *r, tun_unit_names names, size_t unit_count,
                     const uint16_t *of)
{
    for (size_t u = 0; u < unit_count; u++) {
        if (of[u] == UNMAPPED) {
            tun_wrong(r, "", "layer \"%.60s\" is not mapped", names[u]);
            return false;
        }
    }
    return true;
}

void tun_mapping_plan(struct tun_reader *r, const struct tun_mapping *m, size_t unit_count,
                      struct pl_plan *ret)
{
    struct pl_plan plan = {0};

    for (size_t u = 0; u < unit_count; u++) {
        uint16_t place = m->place_of[u];

        if (u > 0 && place == m->place_of[u - 1]) {
            plan.stages[plan.stage_count - 1].last_unit = (uint16_t)u;
            continue;
        }
        if (plan.stage_count == PL_STAGE_MAX) {
            tun_wrong(r, "", "the mapping has more than %u stages", PL_STAGE_MAX);
            return;
        }
        plan.stages[plan.stage_count++] = (struct pl_stage_plan){.first_unit = (uint16_t)u,
                                                                 .last_unit = (uint16_t)u,
                                                                 .group_count = 1,
                                                                 .groups = {m->places[place].team}};
    }
    *ret = plan;
}

/* Two keys on the same cores, or devices where there is one. */
static void check_places(struct tun_reader *r, const json_t *root, const struct tun_problem *p,
                         const struct tun_mapping *m)
{
    const char *first = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)root)), *key;
    json_t *value;

    for (size_t a = 0; a < m->place_count; a++) {
        for (size_t b = 0; b < a; b++) {
            const struct tun_mapping_place *x = &m->places[a], *y = &m->places[b];

            if (same_board(p, x->team.ep, y->team.ep) && (x->cores & y->cores)) {
                tun_wrong(r, "", "two keys name the same core");
            }
        }
    }
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        size_t length = strcspn(first, "_");

        if (p->boards.count <= 1 &&
            (strcspn(key, "_") != length || strncmp(key, first, length) != 0)) {
            tun_wrong(r, "",
                      "\"%.40s\" names another device than \"%.40s\", but this machine has no "
                      "other board",
                      key, first);
        }
    }
}

void tun_mapping_places(struct tun_reader *r, const json_t *root, const struct tun_problem *p,
                        tun_unit_names names, struct tun_mapping *ret)
{
    const size_t most = base_array_count(ret->places);
    const char *key;
    json_t *value;

    ret->place_count = 0;
    if (!json_is_object(root) || json_object_size(root) > most) {
        tun_wrong(r, "", "is not an object with at most %zu keys", most);
        return;
    }
    memset(ret->place_of, 0xff, p->unit_count * sizeof(*ret->place_of));
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        if (!r->error[0] && read_key(r, key, p, &ret->places[ret->place_count])) {
            read_layers(r, key, value, (uint16_t)ret->place_count++, names, p->unit_count,
                        ret->place_of);
        }
    }
    if (!r->error[0]) {
        check_places(r, root, p, ret);
    }
    if (!r->error[0]) {
        is_whole(r, names, p->unit_count, ret->place_of);
    }
}

void tun_mapping_read(struct tun_reader *r, const json_t *root, const struct tun_problem *p,
                      tun_unit_names names, struct pl_plan *ret)
{
    base_autofree uint16_t *place_of = malloc(p->unit_count * sizeof(*place_of));
    struct tun_mapping m = {.place_of = place_of};

    if (!place_of) {
        tun_wrong(r, "", "out of memory");
        return;
    }
    tun_mapping_places(r, root, p, names, &m);
    if (!r->error[0]) {
        tun_mapping_plan(r, &m, p->unit_count, ret);
    }
}

/* ---- devices alone ---- */

static int write_device(const struct tun_device *d, char *ret_error, char ret[KEY_MAX])
{
    size_t cores = base_min(base_max(d->cores, (size_t)1), (size_t)DIGITS);

    if (strchr(d->name, '_')) {
        snprintf(ret_error, TUN_ERROR_MAX,
                 "the board's name \"%.32s\" has an underscore, at which "
                 "AutoDiCE would cut it; give it another with pipectl board",
                 d->name);
        return -EINVAL;
    }
    snprintf(ret, KEY_MAX, "%.32s_cpu", d->name);
    for (size_t i = 0; i < cores; i++) {
        base_append(ret, KEY_MAX, "%zu", i);
    }
    return 0;
}

static int add_unit(json_t *root, const char *key, const char *name)
{
    json_t *layers = json_object_get(root, key);

    if (!layers &&
        (json_object_set_new(root, key, json_array()) || !(layers = json_object_get(root, key)))) {
        return -ENOMEM;
    }
    return json_array_append_new(layers, json_string(name)) ? -ENOMEM : 0;
}

int tun_devices_json(const struct tun_device *devices, size_t count, const uint16_t *of,
                     tun_unit_names names, size_t unit_count, char ret_error[TUN_ERROR_MAX],
                     json_t **ret)
{
    json_t *root = json_object();
    int error = root ? 0 : -ENOMEM;

    ret_error[0] = '\0';
    for (size_t u = 0; u < unit_count && !error; u++) {
        char key[KEY_MAX];

        error = of[u] < count ? write_device(&devices[of[u]], ret_error, key) : -EINVAL;
        error = error ? error : add_unit(root, key, names[u]);
    }
    if (error) {
        json_decref(root);
        return error;
    }
    *ret = root;
    return 0;
}

static bool cores_ok(struct tun_reader *r, const char *key, const struct tun_device *d,
                     const char *digits)
{
    unsigned seen = 0;

    for (const char *at = digits; *at || at == digits; at++) {
        unsigned core = (unsigned)(*at - '0');

        if (core >= DIGITS || seen >> core & 1) {
            tun_wrong(r, key, "is not BOARD_cpu and different cores, such as %s_cpu01", d->name);
            return false;
        }
        if (d->cores && core >= d->cores) {
            tun_wrong(r, key, "%s has no core %u; its cores are 0 to %zu", d->name, core,
                      d->cores - 1);
            return false;
        }
        seen |= 1u << core;
    }
    return true;
}

/* Return: the device of a key; UNMAPPED: there is none, and the reason was noted. */
static uint16_t read_device(struct tun_reader *r, const char *key, const struct tun_device *devices,
                            size_t count)
{
    size_t length = strcspn(key, "_");
    const char *resource = key[length] ? key + length + 1 : "";
    char where[64];

    snprintf(where, sizeof(where), "%.60s", key);
    for (size_t i = 0; i < count; i++) {
        if (strlen(devices[i].name) != length || strncmp(devices[i].name, key, length) != 0) {
            continue;
        }
        if (strncmp(resource, "cpu", 3) == 0 || strncmp(resource, "arm", 3) == 0) {
            return cores_ok(r, where, &devices[i], resource + 3) ? (uint16_t)i : UNMAPPED;
        }
        tun_wrong(r, where, "piped computes on cores alone; name them, as in %s_cpu01",
                  devices[i].name);
        return UNMAPPED;
    }
    tun_wrong(r, where,
              "no board is called \"%.*s\"; pipectl board list names them, and this one "
              "is \"%s\"",
              (int)base_min(length, (size_t)32), key, devices[0].name);
    return UNMAPPED;
}

void tun_devices_read(struct tun_reader *r, const json_t *root, const struct tun_device *devices,
                      size_t count, tun_unit_names names, size_t unit_count, uint16_t *ret)
{
    const char *key;
    json_t *value;

    memset(ret, 0xff, unit_count * sizeof(*ret));
    if (!json_is_object(root)) {
        tun_wrong(r, "", "is not an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        uint16_t device = r->error[0] ? UNMAPPED : read_device(r, key, devices, count);

        if (device != UNMAPPED) {
            read_layers(r, key, value, device, names, unit_count, ret);
        }
    }
    is_whole(r, names, unit_count, ret);
}
