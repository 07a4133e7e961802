/* SPDX-License-Identifier: Apache-2.0 */
#include "base/whole_file.h"

#include "base/base.h"

ssize_t whole_file_part(int fd, size_t at, void *ret, size_t bytes)
{
    size_t have = 0;
    ssize_t n = 1;

    while (have < bytes && n != 0) {
        n = pread(fd, (char *)ret + have, bytes - have, (off_t)(at + have));
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

/* One byte more than the file has is asked for, so that a longer one is noticed. */
static int read_open(int fd, const struct whole_file *f, char **ret, size_t *ret_bytes)
{
    base_autofree char *text = NULL;
    struct stat st;
    ssize_t have;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return WHOLE_FILE_E_KIND;
    }
    if (st.st_mode & f->refused) {
        return WHOLE_FILE_E_OPEN;
    }
    if ((uintmax_t)st.st_size > f->bytes_max) {
        return WHOLE_FILE_E_LARGE;
    }
    text = malloc((size_t)st.st_size + 1);
    have = text ? whole_file_part(fd, 0, text, (size_t)st.st_size + 1) : -ENOMEM;
    if (have != st.st_size) {
        return have < 0 ? (int)have : WHOLE_FILE_E_CHANGED;
    }
    text[have] = '\0';
    *ret = base_take(text);
    *ret_bytes = (size_t)have;
    return 0;
}

int whole_file_read(const struct whole_file *f, char **ret, size_t *ret_bytes)
{
    /* O_NONBLOCK: opening a fifo must not wait for its writer */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (f->no_link ? O_NOFOLLOW : 0);
    base_autoclose int fd = f->path ? openat(f->folder, f->path, flags) : -1;

    return read_open(f->path ? fd : f->folder, f, ret, ret_bytes);
}

const char *whole_file_why(int r)
{
    switch (r) {
    case WHOLE_FILE_E_KIND:
        return "not a regular file";
    case WHOLE_FILE_E_LARGE:
        return "File too large";
    case WHOLE_FILE_E_OPEN:
        return "others may read it";
    case WHOLE_FILE_E_CHANGED:
        return "it changed while it was read";
    default:
        return strerror(-r);
    }
}
