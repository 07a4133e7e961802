/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files: what is refused has a reason; what is accepted is within the bounds of its
 * keys, and its models have names. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/config/keys.h"
#include "tests/fuzz/replay.h"

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const texts[] = {
        ("{\"eps\": [{\"name\": \"a\", \"cpus\": \"0-3,7\", \"speed\": 1.5, \"watts\": 2}],"
         " \"models\": [{\"name\": \"m\", \"path\": \"/m.onnx\", \"plan\": \"0-1@a\"}]}"),
        ("// words\n{\"limits\": {\"connections\": 4, \"user_weights\": \"0=3,1000=1\"},"
         " \"adapt\": {\"enabled\": false}, \"socket_mode\": \"0660\"}"),
        ("{\"planner\": {\"latency_ms\": 5}, \"kernels\": {\"measure_ms\": 0}, \"stalled_ms\": 100,"
         " \"default_model\": \"m\", \"log_level\": \"debug\"}"),
        ("{\"models\": [{\"name\": \"m\", \"path\": \"x\", \"shapes\": \"input=1x3x4x4\","
         " \"calibration\": \"c\"}], \"boards\": {\"name\": \"b\"}, \"sensors\": {\"gpio\": []}}"),
    };

    return fuzz_seed_text(texts, sizeof(texts) / sizeof(texts[0]), index, data, cap);
}

static void check(const struct dmn_config *c)
{
    const struct dmn_config_row *rows = dmn_config_rows;

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        if (rows[i].type == DMN_CONFIG_INT) {
            MUST(c->values[i].number >= rows[i].min && c->values[i].number <= rows[i].max);
        }
    }
    for (size_t i = 0; i < c->model_count; i++) {
        MUST(dmn_config_name_ok(c->models[i].name));
        MUST(dmn_config_find_model(c, c->models[i].name) == &c->models[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int fd = -1;
    static char path[64];
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_config *c = NULL;

    if (fd < 0) {
        fd = memfd_create("config", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    MUST(fd >= 0 && ftruncate(fd, 0) == 0);
    MUST(pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
    if (dmn_config_load(path, true, error, &c) < 0) {
        MUST(error[0] != '\0');
        return 0;
    }
    check(c);
    dmn_config_free(c);
    return 0;
}
