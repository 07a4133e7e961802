/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base.h"
#include "daemon/calibrate.h"
#include "daemon/daemon.h"

void dmn_method_calibrate(struct dmn_call *c)
{
    const json_t *ms = json_object_get(c->parameters, "ms");
    json_int_t wanted = json_is_integer(ms) ? json_integer_value(ms) : DMN_CALIBRATE_MS;
    int error;

    if (wanted < 1 || wanted > DMN_CALIBRATE_MS_MAX) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "ms");
        return;
    }
    for (const struct dmn_model *m = c->daemon->models; m; m = m->next) {
        if (m->retune) {
            dmn_call_error(c, "Busy", "why", "a retune is under way: its figures would suffer");
            return;
        }
    }
    error = dmn_calibrate_begin(c->daemon, c, (unsigned)wanted);
    if (error) {
        dmn_call_error(c, "Busy", "why",
                       error == -EBUSY ? "a calibration is under way" : strerror(-error));
    }
}
