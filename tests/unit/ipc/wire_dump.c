/* SPDX-License-Identifier: Apache-2.0 */
/* The C side of test_protocol_doc.py: layouts of wire.h and decoded messages as lines of text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire.h"

#define FIELD(type, member)                                                                        \
    printf(#type " " #member " %zu %zu\n", offsetof(struct type, member),                          \
           sizeof(((struct type *)0)->member))
#define WHOLE(type) printf(#type " - 0 %zu\n", sizeof(struct type))

static void print_layout(void)
{
    WHOLE(ipc_header);
    FIELD(ipc_header, length);
    FIELD(ipc_header, type);
    FIELD(ipc_header, version);
    FIELD(ipc_header, flags);
    FIELD(ipc_header, stream);
    FIELD(ipc_header, fd_count);
    FIELD(ipc_header, status);
    FIELD(ipc_header, frame);
    FIELD(ipc_header, time_ns);
    WHOLE(ipc_hello);
    FIELD(ipc_hello, version_min);
    FIELD(ipc_hello, version_max);
    FIELD(ipc_hello, features);
    FIELD(ipc_hello, client);
    FIELD(ipc_hello, reserved);
    WHOLE(ipc_welcome);
    FIELD(ipc_welcome, version);
    FIELD(ipc_welcome, reserved);
    FIELD(ipc_welcome, features);
    FIELD(ipc_welcome, payload_max);
    FIELD(ipc_welcome, streams_max);
    FIELD(ipc_welcome, pool_bytes_max);
    FIELD(ipc_welcome, server);
    FIELD(ipc_welcome, instance);
    WHOLE(ipc_open);
    FIELD(ipc_open, model);
    FIELD(ipc_open, pixfmt);
    FIELD(ipc_open, policy);
    FIELD(ipc_open, credits);
    FIELD(ipc_open, priority);
    FIELD(ipc_open, deadline_ns);
    FIELD(ipc_open, input_dtype);
    FIELD(ipc_open, output_dtype);
    WHOLE(ipc_opened);
    FIELD(ipc_opened, credits);
    FIELD(ipc_opened, depth);
    FIELD(ipc_opened, input_count);
    FIELD(ipc_opened, output_count);
    FIELD(ipc_opened, input_bytes);
    FIELD(ipc_opened, output_bytes);
    FIELD(ipc_opened, image_width);
    FIELD(ipc_opened, image_height);
    FIELD(ipc_opened, reserved);
    WHOLE(ipc_tensor);
    FIELD(ipc_tensor, name);
    FIELD(ipc_tensor, dtype);
    FIELD(ipc_tensor, rank);
    FIELD(ipc_tensor, dim);
    FIELD(ipc_tensor, offset);
    FIELD(ipc_tensor, bytes);
    FIELD(ipc_tensor, rows_output);
    FIELD(ipc_tensor, rows_dim);
    WHOLE(ipc_pool);
    FIELD(ipc_pool, pool);
    FIELD(ipc_pool, reserved);
    FIELD(ipc_pool, bytes);
    WHOLE(ipc_frame);
    FIELD(ipc_frame, pool);
    FIELD(ipc_frame, reserved);
    FIELD(ipc_frame, in_offset);
    FIELD(ipc_frame, in_bytes);
    FIELD(ipc_frame, out_offset);
    FIELD(ipc_frame, out_bytes);
    FIELD(ipc_frame, deadline_ns);
    FIELD(ipc_frame, width);
    FIELD(ipc_frame, height);
    FIELD(ipc_frame, stride);
    FIELD(ipc_frame, reserved2);
    WHOLE(ipc_result);
    FIELD(ipc_result, queue_ns);
    FIELD(ipc_result, service_ns);
    FIELD(ipc_result, done_ns);
    FIELD(ipc_result, credits);
    FIELD(ipc_result, epoch);
    FIELD(ipc_result, out_bytes);
    FIELD(ipc_result, depth);
    FIELD(ipc_result, reserved);
    WHOLE(ipc_credit);
    FIELD(ipc_credit, credits);
    FIELD(ipc_credit, reserved);
    WHOLE(ipc_event_msg);
    FIELD(ipc_event_msg, event);
    FIELD(ipc_event_msg, epoch);
    FIELD(ipc_event_msg, reserved);
}

/* Least and largest payload that ipc_get_header() takes for a type, found by trying. */
static int print_bounds(uint16_t type)
{
    uint32_t least = UINT32_MAX, most = 0;
    uint32_t low = 0, high = IPC_PAYLOAD_MAX;
    struct ipc_header h = {.type = type, .version = IPC_VERSION}, got;
    uint8_t b[IPC_HEADER_BYTES];

    for (uint32_t n = 0; n <= IPC_PAYLOAD_MAX && least == UINT32_MAX; n++) {
        h.length = n;
        memcpy(b, &h, sizeof(h));
        if (ipc_get_header(b, &got) == 0) {
            least = n;
        }
    }
    if (least == UINT32_MAX) {
        return 1;
    }
    low = least;
    while (low < high) {
        most = low + (high - low + 1) / 2;
        h.length = most;
        memcpy(b, &h, sizeof(h));
        if (ipc_get_header(b, &got) == 0) {
            low = most;
        } else {
            high = most - 1;
        }
    }
    printf("%" PRIu32 " %" PRIu32 "\n", least, low);
    return 0;
}

static void print_name(const char *field, const char *name)
{
    printf(" %s=", field);
    for (; *name; name++) {
        putchar(*name == ' ' ? '_' : *name);
    }
}

#define N(m, field) printf(" " #field "=%" PRIu64, (uint64_t)(m).field)

static int print_tensors(const uint8_t *b, size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ipc_tensor t;

        if (ipc_get_tensor(b + i * IPC_TENSOR_BYTES, bytes - i * IPC_TENSOR_BYTES, &t) != 0) {
            return 1;
        }
        printf("tensor");
        print_name("name", t.name);
        N(t, dtype);
        N(t, rank);
        printf(" dim=");
        for (size_t k = 0; k < IPC_RANK_MAX; k++) {
            printf("%s%" PRIu32, k ? "," : "", t.dim[k]);
        }
        N(t, offset);
        N(t, bytes);
        N(t, rows_output);
        N(t, rows_dim);
        printf("\n");
    }
    return 0;
}

static int print_connection(uint16_t type, const uint8_t *b, size_t bytes)
{
    struct ipc_hello hello;
    struct ipc_welcome welcome;
    struct ipc_open open_m;
    struct ipc_opened opened;
    struct ipc_pool pool;

    if (type == IPC_HELLO && ipc_get_hello(b, bytes, &hello) == 0) {
        printf("payload");
        N(hello, version_min);
        N(hello, version_max);
        N(hello, features);
        print_name("client", hello.client);
        N(hello, reserved);
    } else if (type == IPC_WELCOME && ipc_get_welcome(b, bytes, &welcome) == 0) {
        printf("payload");
        N(welcome, version);
        N(welcome, reserved);
        N(welcome, features);
        N(welcome, payload_max);
        N(welcome, streams_max);
        N(welcome, pool_bytes_max);
        print_name("server", welcome.server);
        N(welcome, instance);
    } else if (type == IPC_OPEN && ipc_get_open(b, bytes, &open_m) == 0) {
        printf("payload");
        print_name("model", open_m.model);
        N(open_m, pixfmt);
        N(open_m, policy);
        N(open_m, credits);
        N(open_m, priority);
        N(open_m, deadline_ns);
        N(open_m, input_dtype);
        N(open_m, output_dtype);
    } else if (type == IPC_OPENED && ipc_get_opened(b, bytes, &opened) == 0) {
        printf("payload");
        N(opened, credits);
        N(opened, depth);
        N(opened, input_count);
        N(opened, output_count);
        N(opened, input_bytes);
        N(opened, output_bytes);
        N(opened, image_width);
        N(opened, image_height);
        N(opened, reserved);
        printf("\n");
        return print_tensors(b + IPC_OPENED_BYTES, bytes - IPC_OPENED_BYTES,
                             opened.input_count + opened.output_count);
    } else if (type == IPC_POOL && ipc_get_pool(b, bytes, &pool) == 0) {
        printf("payload");
        N(pool, pool);
        N(pool, reserved);
        N(pool, bytes);
    } else {
        return 1;
    }
    printf("\n");
    return 0;
}

static int print_frame(uint16_t type, const uint8_t *b, size_t bytes)
{
    struct ipc_frame frame;
    struct ipc_result result;
    struct ipc_credit credit;
    struct ipc_event_msg event;

    if ((type == IPC_FRAME || type == IPC_INLINE) && ipc_get_frame(b, bytes, &frame) == 0) {
        printf("payload");
        N(frame, pool);
        N(frame, reserved);
        N(frame, in_offset);
        N(frame, in_bytes);
        N(frame, out_offset);
        N(frame, out_bytes);
        N(frame, deadline_ns);
        N(frame, width);
        N(frame, height);
        N(frame, stride);
        N(frame, reserved2);
    } else if (type == IPC_RESULT && ipc_get_result(b, bytes, &result) == 0) {
        printf("payload");
        N(result, queue_ns);
        N(result, service_ns);
        N(result, done_ns);
        N(result, credits);
        N(result, epoch);
        N(result, out_bytes);
        N(result, depth);
        N(result, reserved);
    } else if (type == IPC_CREDIT && ipc_get_credit(b, bytes, &credit) == 0) {
        printf("payload");
        N(credit, credits);
        N(credit, reserved);
    } else if (type == IPC_EVENT && ipc_get_event(b, bytes, &event) == 0) {
        printf("payload");
        N(event, event);
        N(event, epoch);
        N(event, reserved);
    } else {
        return 1;
    }
    printf("\n");
    return 0;
}

static int decode(void)
{
    static uint8_t b[65536];
    size_t bytes = fread(b, 1, sizeof(b), stdin);
    struct ipc_header h;

    if (bytes < IPC_HEADER_BYTES || ipc_get_header(b, &h) != 0 ||
        h.length != bytes - IPC_HEADER_BYTES) {
        return 1;
    }
    printf("header");
    N(h, length);
    N(h, type);
    N(h, version);
    N(h, flags);
    N(h, stream);
    N(h, fd_count);
    N(h, status);
    N(h, frame);
    N(h, time_ns);
    printf("\n");
    switch (h.type) {
    case IPC_HELLO:
    case IPC_WELCOME:
    case IPC_OPEN:
    case IPC_OPENED:
    case IPC_POOL:
        return print_connection(h.type, b + IPC_HEADER_BYTES, h.length);
    case IPC_FRAME:
    case IPC_INLINE:
    case IPC_RESULT:
    case IPC_CREDIT:
    case IPC_EVENT:
        return print_frame(h.type, b + IPC_HEADER_BYTES, h.length);
    default:
        return 0;
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "layout") == 0) {
        print_layout();
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "bounds") == 0) {
        return print_bounds((uint16_t)strtoul(argv[2], NULL, 0));
    }
    if (argc == 3 && strcmp(argv[1], "dtype") == 0) {
        printf("%zu\n", ipc_dtype_bytes((uint32_t)strtoul(argv[2], NULL, 0)));
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "decode") == 0) {
        return decode();
    }
    fprintf(stderr, "usage: wire_dump layout | bounds TYPE | dtype N | decode\n");
    return 2;
}
