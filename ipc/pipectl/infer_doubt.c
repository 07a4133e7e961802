/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl infer: what is doubtful about a model that answers pictures. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ipc/pipectl/infer.h"

static bool is_meant(const struct infer *in, const json_t *model)
{
    return in->model ? strcmp(ctl_text(model, "name"), in->model) == 0
                     : json_is_true(json_object_get(model, "default"));
}

void infer_warn(const struct infer *in)
{
    json_t *reply, *m, *w;
    size_t i, k;

    if (access(in->ctl->control_path, W_OK) < 0 ||
        ctl_call(in->ctl, "Models", json_object(), &reply) != CTL_DONE) {
        return;
    }
    json_array_foreach(json_object_get(reply, "models"), i, m)
    {
        json_array_foreach(json_object_get(m, "warnings"), k, w)
        {
            if (is_meant(in, m) && json_is_string(w)) {
                ctl_say("warning: %s: %s", ctl_text(m, "name"), json_string_value(w));
            }
        }
    }
    json_decref(reply);
}
