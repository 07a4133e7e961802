/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: libpiped, with messages for people. */
#include "apps/pipectl/common/pipectl.h"
#include "base/pixfmt.h"
#include "ipc/wire.h"

#define FOR_EVER_MS (PIPED_RECONNECT_NEVER - 1) /* seven weeks */

int ctl_connect(const struct ctl *ctl, uint32_t reconnect_ms, struct piped **ret)
{
    struct piped_options o = {.size = sizeof(o),
                              .path = ctl->frames_path,
                              .client = "pipectl",
                              .reconnect_ms = reconnect_ms,
                              .answer_ms = ctl->timeout_ms > 0 ? (uint32_t)ctl->timeout_ms : 0};
    int rc;

    if (!reconnect_ms && ctl->timeout_ms >= 0) {
        o.reconnect_ms = ctl->timeout_ms ? (uint32_t)ctl->timeout_ms : FOR_EVER_MS;
    }
    rc = piped_connect(&o, ret);

    if (rc == 0) {
        return CTL_DONE;
    }
    if (rc == -EPROTO) {
        return ctl_fail("%s", piped_last_error());
    }
    if (rc == -EHOSTDOWN) {
        return ctl_not_started(piped_last_error());
    }
    return ctl_unreachable(piped_last_error(), -rc, ctl->frames_path);
}

void ctl_say_trouble(const struct piped *p, bool *said)
{
    const char *why = piped_trouble(p);

    if (*why && !*said) {
        ctl_say("waits: %s", why);
    }
    *said = *why;
}

bool ctl_own_model(const char *name, char *ret_path, size_t bytes)
{
    const char *folder = access(CTL_MODELS, R_OK) == 0 ? CTL_MODELS : CTL_MODELS_SOURCE;

    return *name && !strchr(name, '/') &&
           snprintf(ret_path, bytes, "%s/%s.onnx", folder, name) < (int)bytes &&
           access(ret_path, F_OK) == 0;
}

int ctl_open_stream(struct piped *p, const struct piped_stream_options *o, const char *tensors,
                    struct piped_stream **ret)
{
    int rc = piped_stream_open(p, o, ret);
    char path[PATH_MAX];

    if (rc == 0) {
        return CTL_DONE;
    }
    ctl_say("%s", piped_last_error());
    if (rc == -ENOENT && o->model && ctl_own_model(o->model, path, sizeof(path))) {
        ctl_say("it comes with piped: sudo pipectl models load %s", o->model);
    } else if (rc == -ENOENT) {
        ctl_say("pipectl models lists the loaded models");
    } else if (rc == -EOPNOTSUPP && o->pixfmt != PIPED_TENSOR) {
        ctl_say("send raw tensors instead: %s", tensors);
    }
    return rc == -ENOTCONN ? CTL_UNREACHABLE : CTL_FAILED;
}

bool ctl_pixfmt(const char *name, uint32_t *ret)
{
    enum pixfmt f;

    if (!pixfmt_find(name, strlen(name), &f)) {
        return false;
    }
    *ret = f;
    return true;
}

size_t ctl_tensor_count(const struct piped_tensor *t)
{
    return (size_t)(t->bytes / ipc_dtype_bytes(t->dtype)); /* the library checked dtype and bytes */
}

double ctl_tensor_value(const struct piped_tensor *t, const void *data, size_t i)
{
    const uint8_t *at = (const uint8_t *)data + t->offset;
    float f;
    int32_t i32;
    int64_t i64;

    switch (t->dtype) {
    case PIPED_F32:
        memcpy(&f, at + 4 * i, 4);
        return (double)f;
    case PIPED_I32:
        memcpy(&i32, at + 4 * i, 4);
        return i32;
    case PIPED_I64:
        memcpy(&i64, at + 8 * i, 8);
        return (double)i64;
    case PIPED_I8:
        return (int8_t)at[i];
    default:
        return at[i];
    }
}
