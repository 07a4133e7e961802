/* SPDX-License-Identifier: Apache-2.0 */
/* Varlink framing on any bytes, fed in pieces whose sizes the first byte chooses: no message is
 * lost or invented, and what is accepted as a call can be encoded again. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/varlink.h"
#include "tests/fuzz/replay.h"

static void use_call(json_t *message)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    struct ipc_varlink_call c, again;
    json_t *copy = NULL;
    char *bytes;
    size_t count;

    if (ipc_varlink_parse_call(message, &c) != 0) {
        return;
    }
    MUST(c.method && json_is_object(c.parameters));
    MUST(ipc_varlink_call(c.method, c.parameters, c.more, &bytes, &count) == 0);
    MUST(strlen(bytes) + 1 == count);
    if (ipc_varlink_feed(&r, bytes, count) == 0 && ipc_varlink_next(&r, &copy) == 0) {
        MUST(ipc_varlink_parse_call(copy, &again) == 0);
        MUST(strcmp(again.method, c.method) == 0 && again.more == c.more);
        MUST(json_equal(again.parameters, c.parameters));
        json_decref(copy);
    }
    free(bytes);
    ipc_varlink_reader_deinit(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipc_varlink_reader r = IPC_VARLINK_READER_NULL;
    size_t piece = size ? 1 + data[0] % 61 : 1, messages = 0, ends = 0, i;

    for (i = size ? 1 : 0; i < size; i += piece) {
        size_t n = piece < size - i ? piece : size - i;
        json_t *m;
        int rc = ipc_varlink_feed(&r, data + i, n);

        MUST(rc == 0 || rc == IPC_VARLINK_E_TOO_BIG);
        if (rc != 0) {
            break;
        }
        for (size_t k = i; k < i + n; k++) {
            ends += data[k] == 0;
        }
        while ((rc = ipc_varlink_next(&r, &m)) != IPC_VARLINK_E_NONE) {
            MUST(rc == 0 || rc == IPC_VARLINK_E_BAD_JSON);
            messages++;
            if (rc == 0) {
                use_call(m);
                json_decref(m);
            }
        }
        MUST(messages == ends);
    }
    ipc_varlink_reader_deinit(&r);
    return 0;
}
