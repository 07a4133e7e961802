/* SPDX-License-Identifier: Apache-2.0 */
/* libpiped: the slots of a stream, in a sealed memfd or in plain memory. */
#include <sys/mman.h>

#include "base/base.h"
#include "base/pixfmt.h"
#include "ipc/client/client.h"

#define AREA_ALIGN 64u
#define DIMENSION_MAX 32768u
/* Of slots that the caller does not count: a few large pictures keep a daemon busy, and its users
 * share limits.pool_mib_per_user. */
#define DEFAULT_POOL_BYTES ((size_t)256 << 20)
#define DEFAULT_SLOTS_LEAST 4u

int ipc_picture_bytes(uint32_t pixfmt, uint32_t width, uint32_t height, uint32_t stride,
                      size_t *ret)
{
    const struct pixfmt_info *format = &pixfmt_table[pixfmt];
    uint32_t row;
    size_t bytes;

    if (width == 0 || height == 0) {
        return ipc_client_error(-EINVAL, "the picture is empty (%ux%u)", width, height);
    }
    if (width > DIMENSION_MAX || height > DIMENSION_MAX) {
        return ipc_client_error(-EINVAL,
                                "a picture of %ux%u is too large: width and height may be at most "
                                "%u",
                                width, height, DIMENSION_MAX);
    }
    if (format->even && (width % 2 || height % 2)) {
        return ipc_client_error(-EINVAL,
                                "a picture of %ux%u cannot be %s: nv12 and yuyv need an even width "
                                "and height",
                                width, height, format->name);
    }
    row = pixfmt_row_bytes((enum pixfmt)pixfmt, width);
    if (stride && stride < row) {
        return ipc_client_error(-EINVAL, "rows have %u bytes, and stride is %u", row, stride);
    }
    bytes = pixfmt_image_bytes((enum pixfmt)pixfmt, width, height, stride ? stride : row);
    if (bytes == 0 || bytes > IPC_POOL_BYTES_MAX) {
        return ipc_client_error(-EINVAL,
                                "a picture of %ux%u is too large: it has %zu MiB, and the memory "
                                "of a stream at most %llu",
                                width, height, bytes >> 20, IPC_POOL_BYTES_MAX >> 20);
    }
    *ret = bytes;
    return 0;
}

/* The seals let the daemon trust the size. Writing once makes the pages exist and charges them to
 * this process. */
static int allocate_shared(struct piped_stream *s)
{
    base_autoclose int fd = memfd_create("piped-frames", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory;

    if (fd < 0 || ftruncate(fd, (off_t)s->memory_bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        return ipc_client_error(-errno, "cannot allocate %zu bytes of shared memory: %s",
                                s->memory_bytes, strerror(errno));
    }
    memory = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        return ipc_client_error(-errno, "cannot map %zu bytes: %s", s->memory_bytes,
                                strerror(errno));
    }
    memset(memory, 0, s->memory_bytes);
    s->memory = memory;
    s->memfd = base_take_fd(&fd);
    return 0;
}

/* One a credit; fewer if they are large. */
static size_t default_slots(size_t credits, size_t slot_bytes)
{
    size_t most = base_max(DEFAULT_POOL_BYTES / slot_bytes, (size_t)DEFAULT_SLOTS_LEAST);

    most = base_min(most, base_max(IPC_POOL_BYTES_MAX / slot_bytes, (size_t)1));
    return base_min(base_max(credits, (size_t)2), most);
}

static int allocate_plain(struct piped_stream *s)
{
    s->memory = aligned_alloc(AREA_ALIGN, s->memory_bytes);
    if (!s->memory) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    memset(s->memory, 0, s->memory_bytes);
    return 0;
}

int ipc_stream_allocate(struct piped_stream *s)
{
    struct piped_stream_info *info = &s->info;
    size_t count, slot;
    int rc;

    s->input_size = (size_t)info->input_bytes;
    if (s->open.pixfmt != IPC_PIX_TENSOR) {
        s->width = s->width ? s->width : info->image_width;
        s->height = s->height ? s->height : info->image_height;
        rc = ipc_picture_bytes(s->open.pixfmt, s->width, s->height, s->stride, &s->input_size);
        if (rc < 0) {
            return rc;
        }
    }
    s->output_size = (size_t)info->output_bytes;
    if (s->input_size == 0 || s->input_size > IPC_POOL_BYTES_MAX ||
        s->output_size > IPC_POOL_BYTES_MAX) {
        return ipc_client_error(-EPROTO, "the daemon sent impossible sizes");
    }
    slot = base_align_up(s->input_size, AREA_ALIGN) + base_align_up(s->output_size, AREA_ALIGN);
    count = s->slots_wanted ? s->slots_wanted : default_slots(info->credits, slot);
    if (!base_mul(slot, count, &s->memory_bytes) || s->memory_bytes > IPC_POOL_BYTES_MAX) {
        return ipc_client_error(-EINVAL,
                                "%zu slots of %zu bytes are more than the %llu MiB of a stream, "
                                "which no key raises; use fewer slots or smaller frames",
                                count, slot, IPC_POOL_BYTES_MAX >> 20);
    }
    rc = s->inline_frames ? allocate_plain(s) : allocate_shared(s);
    if (rc < 0) {
        return rc;
    }
    s->slots = calloc(count, sizeof(*s->slots));
    if (!s->slots) {
        return ipc_client_error(-ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        s->slots[i].in_offset = i * slot;
        s->slots[i].out_offset = i * slot + base_align_up(s->input_size, AREA_ALIGN);
    }
    s->slot_count = count;
    info->slots = (uint32_t)count;
    return 0;
}

void ipc_stream_deallocate(struct piped_stream *s)
{
    if (s->memory && s->memfd >= 0) {
        munmap(s->memory, s->memory_bytes);
    } else {
        free(s->memory);
    }
    s->memory = NULL;
    base_close_fd(&s->memfd);
    free(base_take(s->slots));
    s->slot_count = 0;
}
