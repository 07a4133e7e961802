/* SPDX-License-Identifier: Apache-2.0 */
/* libgpiod 1.x: each line is requested by itself and has a descriptor of its own. */
#include <gpiod.h>

#include "base/base.h"
#include "governor/gpio_private.h"

struct gov_gpio {
    struct gpiod_chip *chip;                       /* owned */
    struct gpiod_line *lines[GOV_GPIO_LINE_COUNT]; /* the chip's; NULL: not used */
    char name[2 * GOV_GPIO_NAME_MAX];
};

/* An edge of a line that nobody waits for must not block who asks for it. */
static int take_input(struct gpiod_line *line, int flags)
{
    int fd, mode;

    if (gpiod_line_request_both_edges_events_flags(line, GOV_GPIO_CONSUMER, flags) < 0) {
        return gov_gpio_failure(errno);
    }
    fd = gpiod_line_event_get_fd(line);
    mode = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    return mode < 0 || fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0 ? gov_gpio_failure(errno) : 0;
}

static int take(struct gov_gpio *g, const struct gov_gpio_config *c, size_t i)
{
    int flags = c->lines[i].active_low ? GPIOD_LINE_REQUEST_FLAG_ACTIVE_LOW : 0, error;
    struct gpiod_line *line;

    if (c->lines[i].offset < 0) {
        return 0;
    }
    if ((unsigned)c->lines[i].offset >= gpiod_chip_num_lines(g->chip)) {
        return GOV_GPIO_E_LINE;
    }
    line = gpiod_chip_get_line(g->chip, (unsigned)c->lines[i].offset);
    if (!line) {
        return gov_gpio_failure(errno);
    }
    if (i == GOV_GPIO_LED) {
        error = gpiod_line_request_output_flags(line, GOV_GPIO_CONSUMER, flags, 0) < 0
                    ? gov_gpio_failure(errno)
                    : 0;
    } else {
        error = take_input(line, flags);
    }
    g->lines[i] = line;
    return error;
}

int gov_gpio_open(const struct gov_gpio_config *c, struct gov_gpio **ret)
{
    struct gov_gpio *g = calloc(1, sizeof(*g));
    int error = 0;

    if (!g) {
        return -ENOMEM;
    }
    errno = 0;
    g->chip = gpiod_chip_open_lookup(c->chip);
    if (!g->chip) {
        /* A lookup by label ends without a reason when no chip has it. */
        error = errno ? gov_gpio_failure(errno) : GOV_GPIO_E_ABSENT;
    }
    for (size_t i = 0; !error && i < GOV_GPIO_LINE_COUNT; i++) {
        error = take(g, c, i);
    }
    if (error) {
        gov_gpio_close(g);
        return error;
    }
    snprintf(g->name, sizeof(g->name), "%.60s (%.60s)", gpiod_chip_name(g->chip),
             gpiod_chip_label(g->chip));
    *ret = g;
    return 0;
}

struct gov_gpio *gov_gpio_close(struct gov_gpio *g)
{
    if (g && g->chip) {
        gpiod_chip_close(g->chip); /* and its lines */
    }
    free(g);
    return NULL;
}

const char *gov_gpio_chip(const struct gov_gpio *g)
{
    return g->name;
}

int gov_gpio_fd(const struct gov_gpio *g, enum gov_gpio_line line)
{
    return line == GOV_GPIO_LED || !g->lines[line] ? -1 : gpiod_line_event_get_fd(g->lines[line]);
}

int gov_gpio_edges(struct gov_gpio *g, enum gov_gpio_line line, struct gov_gpio_edge *ret,
                   size_t max)
{
    struct gpiod_line_event events[GOV_GPIO_EDGES_AT_ONCE];
    int count, fd = gov_gpio_fd(g, line);

    if (fd < 0) {
        return 0;
    }
    count = gpiod_line_event_read_fd_multiple(
        fd, events, (unsigned)base_min(max, (size_t)GOV_GPIO_EDGES_AT_ONCE));
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -(errno ? errno : EIO);
    }
    for (int i = 0; i < count; i++) {
        ret[i].active = events[i].event_type == GPIOD_LINE_EVENT_RISING_EDGE;
        ret[i].at_ns =
            (uint64_t)events[i].ts.tv_sec * BASE_NS_PER_S + (uint64_t)events[i].ts.tv_nsec;
    }
    return count;
}

int gov_gpio_get(struct gov_gpio *g, enum gov_gpio_line line, bool *ret_active)
{
    int value;

    if (!g->lines[line]) {
        return -ENOENT;
    }
    value = gpiod_line_get_value(g->lines[line]);
    if (value < 0) {
        return -(errno ? errno : EIO);
    }
    *ret_active = value > 0;
    return 0;
}

int gov_gpio_set(struct gov_gpio *g, enum gov_gpio_line line, bool active)
{
    if (!g->lines[line]) {
        return -ENOENT;
    }
    return gpiod_line_set_value(g->lines[line], active) < 0 ? -(errno ? errno : EIO) : 0;
}
