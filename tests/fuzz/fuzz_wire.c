/* SPDX-License-Identifier: Apache-2.0 */
/* The frames codec on any bytes: what it accepts must survive an encode and decode unchanged. */
#include <stdlib.h>
#include <string.h>

#include "ipc/server/frame_rules.h"
#include "ipc/wire.h"
#include "tests/fuzz/replay.h"

/* Decodes at the start of the bytes; if accepted, the round trip is exact. */
#define TRY(kind, type_name, BYTES)                                                                \
    do {                                                                                           \
        struct type_name a, b;                                                                     \
        uint8_t bytes[BYTES];                                                                      \
        memset(&a, 0, sizeof(a));                                                                  \
        memset(&b, 0, sizeof(b));                                                                  \
        if (ipc_get_##kind(data, size, &a) == 0) {                                                 \
            MUST(size >= BYTES);                                                                   \
            memcpy(bytes, &a, BYTES);                                                              \
            MUST(ipc_get_##kind(bytes, BYTES, &b) == 0);                                           \
            MUST(memcmp(&a, &b, sizeof(a)) == 0);                                                  \
        }                                                                                          \
    } while (0)

static void check_ranges(const uint8_t *data, size_t size)
{
    struct ipc_tensor t;
    struct ipc_frame f;
    struct ipc_open o;

    if (ipc_get_tensor(data, size, &t) == 0) {
        MUST(t.rank <= IPC_RANK_MAX && ipc_dtype_bytes(t.dtype) > 0 &&
             t.offset + t.bytes >= t.bytes);
        MUST(memchr(t.name, 0, IPC_NAME_BYTES));
    }
    if (ipc_get_frame(data, size, &f) == 0) {
        MUST(f.in_offset + f.in_bytes >= f.in_bytes && f.out_offset + f.out_bytes >= f.out_bytes);
        MUST(f.pool < IPC_POOLS_MAX);
    }
    if (size >= IPC_OPEN_BYTES) {
        const struct ipc_open_place place = {.streams_max = 1, .features = IPC_FEATURE_F16};
        const char *why = "";

        if (ipc_open_check(&(struct ipc_header){.stream = 1}, data, &place, &o, &why) == IPC_OK) {
            MUST(o.input_dtype == 0 || (o.input_dtype == IPC_F16 && o.pixfmt == IPC_PIX_TENSOR));
            MUST(o.output_dtype == 0 || o.output_dtype == IPC_F16);
        }
    }
    if (ipc_get_open(data, size, &o) == 0) {
        MUST(o.pixfmt < IPC_PIX_COUNT && memchr(o.model, 0, IPC_NAME_BYTES));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipc_header h;

    if (size >= IPC_HEADER_BYTES) {
        uint8_t again[IPC_HEADER_BYTES];
        int rc = ipc_get_header(data, &h);

        memcpy(again, &h, sizeof(h));
        MUST(memcmp(again, data, IPC_HEADER_BYTES) == 0);
        if (rc == 0) {
            MUST(h.length <= IPC_PAYLOAD_MAX && h.fd_count <= IPC_FDS_MAX);
            MUST(h.version == IPC_VERSION);
            MUST(ipc_type_name(h.type) && ipc_status_name((enum ipc_status)h.status));
        }
        data += IPC_HEADER_BYTES;
        size -= IPC_HEADER_BYTES;
    }
    TRY(hello, ipc_hello, IPC_HELLO_BYTES);
    TRY(welcome, ipc_welcome, IPC_WELCOME_BYTES);
    TRY(open, ipc_open, IPC_OPEN_BYTES);
    TRY(opened, ipc_opened, IPC_OPENED_BYTES);
    TRY(tensor, ipc_tensor, IPC_TENSOR_BYTES);
    TRY(pool, ipc_pool, IPC_POOL_BYTES);
    TRY(frame, ipc_frame, IPC_FRAME_BYTES);
    TRY(result, ipc_result, IPC_RESULT_BYTES);
    TRY(credit, ipc_credit, IPC_CREDIT_BYTES);
    TRY(event, ipc_event_msg, IPC_EVENT_BYTES);
    check_ranges(data, size);
    return 0;
}
