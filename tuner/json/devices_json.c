/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/devices_json.h"

#include "base/append.h"
#include "base/base.h"

#define DIGITS 10u /* cores that a key can name */
#define KEY_MAX 96u

/* ---- writing ---- */

static int write_key(const struct tun_device *d, char *ret_error, char ret[KEY_MAX])
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

        error = of[u] < count ? write_key(&devices[of[u]], ret_error, key) : -EINVAL;
        error = error ? error : add_unit(root, key, names[u]);
    }
    if (error) {
        json_decref(root);
        return error;
    }
    *ret = root;
    return 0;
}

/* ---- reading ---- */

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

/* Return: the device of a key; TUN_UNMAPPED: there is none, and the reason was noted. */
static uint16_t read_key(struct tun_reader *r, const char *key, const struct tun_device *devices,
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
            return cores_ok(r, where, &devices[i], resource + 3) ? (uint16_t)i : TUN_UNMAPPED;
        }
        tun_wrong(r, where, "piped computes on cores alone; name them, as in %s_cpu01",
                  devices[i].name);
        return TUN_UNMAPPED;
    }
    tun_wrong(r, where,
              "no board is called \"%.*s\"; pipectl board list names them, and this one "
              "is \"%s\"",
              (int)base_min(length, (size_t)32), key, devices[0].name);
    return TUN_UNMAPPED;
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
        uint16_t device = r->error[0] ? TUN_UNMAPPED : read_key(r, key, devices, count);

        if (device != TUN_UNMAPPED) {
            tun_mapping_layers(r, key, value, device, names, unit_count, ret);
        }
    }
    tun_mapping_whole(r, names, unit_count, ret);
}
