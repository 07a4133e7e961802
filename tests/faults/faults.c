/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD: fails the n-th call of a kind, as fault_control.h says.
 *
 * Calls from libraries that end the process where an allocation or a thread fails are not counted;
 * docs/reliability.md lists them with what is done instead.
 */
#include "tests/faults/fault_control.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/faults.h"

#define SPARED_MAX 32
#define FRAMES_MAX 24

/* name: part of the object's; kinds: a bit for each kind that is not counted from there */
static const struct {
    const char *name;
    uint32_t kinds;
} spared_names[] = {
    {"libdnnl", ~0u},        {"libXNNPACK", ~0u},
    {"libpthreadpool", ~0u}, {"libopenblas", ~0u},
    {"libgomp", ~0u},        {"libcpuinfo", ~0u},
    {"libhwloc", ~0u},       {"libgfortran", ~0u},
    {"libOpenCL", ~0u},      {"libstdc++", ~0u},
    {"libgcc_s", ~0u},       {"libasan", ~0u},
    {"ld-linux", ~0u},       {"libuv", 1u << FAULT_EPOLL | 1u << FAULT_THREAD},
};

static struct {
    uintptr_t begin, end;
    uint32_t kinds;
} spared[SPARED_MAX];
static size_t spared_count;
static struct fault_control *control;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (size_t n = 0; n < sizeof(spared_names) / sizeof(*spared_names); n++) {
        if (!strstr(info->dlpi_name, spared_names[n].name)) {
            continue;
        }
        for (size_t i = 0; i < info->dlpi_phnum && spared_count < SPARED_MAX; i++) {
            const ElfW(Phdr) *h = &info->dlpi_phdr[i];

            if (h->p_type == PT_LOAD && (h->p_flags & PF_X)) {
                spared[spared_count].begin = info->dlpi_addr + h->p_vaddr;
                spared[spared_count].end = spared[spared_count].begin + h->p_memsz;
                spared[spared_count++].kinds = spared_names[n].kinds;
            }
        }
    }
    return 0;
}

static bool is_from(const char *object, const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, object);
}

static bool is_spared(enum fault_kind kind, const void *caller)
{
    for (size_t i = 0; i < spared_count; i++) {
        if ((uintptr_t)caller >= spared[i].begin && (uintptr_t)caller < spared[i].end) {
            return (spared[i].kinds >> kind & 1) != 0;
        }
    }
    return false;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PIPED_FAULTS");
    void *frame[1];
    int fd;

    if (!path) {
        return;
    }
    inside = true;
    backtrace(frame, 1); /* loads what it needs now */
    dl_iterate_phdr(note_object, NULL);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        void *p = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        control = p == MAP_FAILED ? NULL : p;
        close(fd);
    }
    inside = false;
    if (!control) {
        static const char text[] = "faults: PIPED_FAULTS cannot be mapped\n";

        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        _exit(99);
    }
}

void fault_main_begins(void)
{
    uint32_t from_main = 2;

    if (control) {
        atomic_compare_exchange_strong(&control->armed, &from_main, 1);
    }
}

/* Writes who called. The first frames are this library's. */
static void note_where(void)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    size_t used = 0;

    for (int i = 2; i < count && used < FAULT_WHERE_BYTES - 1; i++) {
        Dl_info info;

        if (dladdr(frames[i], &info) && info.dli_fname) {
            const char *slash = strrchr(info.dli_fname, '/');
            int n = snprintf(control->where + used, FAULT_WHERE_BYTES - used, "%s+0x%lx\n",
                             slash ? slash + 1 : info.dli_fname,
                             (unsigned long)((char *)frames[i] - (char *)info.dli_fbase));

            used += n > 0 ? (size_t)n : 0;
        }
    }
}

enum fault_how fault_now(enum fault_kind kind, const void *caller)
{
    uint64_t n;

    if (!control || inside || atomic_load_explicit(&control->armed, memory_order_acquire) != 1 ||
        control->kind != (uint32_t)kind || (!control->strict && is_spared(kind, caller)) ||
        (control->libuv && !is_from("libuv", caller))) {
        return FAULT_HOW_NOT;
    }
    n = atomic_fetch_add(&control->calls, 1) + 1;
    if (control->mode == FAULT_COUNT || n < control->nth ||
        (control->mode == FAULT_ONCE && n > control->nth)) {
        return FAULT_HOW_NOT;
    }
    if (atomic_fetch_add(&control->failed, 1) == 0) {
        inside = true;
        note_where();
        inside = false;
    }
    errno = (int)control->error;
    return control->error == FAULT_SHORT ? FAULT_HOW_SHORT : FAULT_HOW_ERROR;
}

enum fault_kind fault_kind_of(int fd, enum fault_kind socket, enum fault_kind file)
{
    int before = errno;
    struct stat st;
    mode_t type = fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : 0;

    errno = before;
    return type == S_IFSOCK ? socket : type == S_IFREG ? file : FAULT_KINDS;
}
