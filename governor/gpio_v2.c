/* SPDX-License-Identifier: Apache-2.0 */
/* libgpiod 2.x: a request for each line, so that each has a descriptor of its own. */
#include <dirent.h>
#include <gpiod.h>

#include "base/base.h"
#include "governor/gpio_private.h"

struct gov_gpio {
    struct gpiod_chip *chip;                                  /* owned */
    struct gpiod_line_request *requests[GOV_GPIO_LINE_COUNT]; /* owned; NULL: not used */
    unsigned offsets[GOV_GPIO_LINE_COUNT];
    struct gpiod_edge_event_buffer *events; /* owned */
    char name[2 * GOV_GPIO_NAME_MAX];
};

static void free_settings(struct gpiod_line_settings **s)
{
    gpiod_line_settings_free(*s);
}

static void free_line_config(struct gpiod_line_config **c)
{
    gpiod_line_config_free(*c);
}

static void free_request_config(struct gpiod_request_config **c)
{
    gpiod_request_config_free(*c);
}

static void free_info(struct gpiod_chip_info **i)
{
    if (*i) {
        gpiod_chip_info_free(*i);
    }
}

static void close_folder(DIR **folder)
{
    if (*folder) {
        closedir(*folder);
    }
}

/* The chip at @path if it is called or labelled @wanted (NULL: any). */
static struct gpiod_chip *open_as(const char *path, const char *wanted, struct gov_gpio *g)
{
    struct gpiod_chip *chip = gpiod_chip_open(path);
    base_cleanup(free_info) struct gpiod_chip_info *info = chip ? gpiod_chip_get_info(chip) : NULL;

    if (!chip) {
        return NULL;
    }
    if (!info || (wanted && strcmp(gpiod_chip_info_get_name(info), wanted) != 0 &&
                  strcmp(gpiod_chip_info_get_label(info), wanted) != 0)) {
        int error = info ? ENOENT : errno;

        gpiod_chip_close(chip);
        errno = error;
        return NULL;
    }
    snprintf(g->name, sizeof(g->name), "%.60s (%.60s)", gpiod_chip_info_get_name(info),
             gpiod_chip_info_get_label(info));
    return chip;
}

/* By path, or by the name or label of any chip in /dev. Return: NULL with errno set. */
static struct gpiod_chip *open_chip(const char *descr, struct gov_gpio *g)
{
    base_cleanup(close_folder) DIR *folder = NULL;
    struct gpiod_chip *chip = NULL;
    struct dirent *entry;
    int error = ENOENT;

    if (strchr(descr, '/')) {
        return open_as(descr, NULL, g);
    }
    folder = opendir("/dev");
    while (folder && !chip && (entry = readdir(folder))) {
        char path[sizeof("/dev/") + sizeof(entry->d_name)];

        if (strncmp(entry->d_name, "gpiochip", strlen("gpiochip")) != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
        chip = open_as(path, descr, g);
        if (!chip && (errno == EACCES || errno == EPERM)) {
            error = errno; /* it may have been this one */
        }
    }
    errno = error;
    return chip;
}

static int fill(struct gpiod_line_settings *s, bool output, bool active_low)
{
    gpiod_line_settings_set_active_low(s, active_low);
    if (output) {
        return gpiod_line_settings_set_direction(s, GPIOD_LINE_DIRECTION_OUTPUT) ||
               gpiod_line_settings_set_output_value(s, GPIOD_LINE_VALUE_INACTIVE);
    }
    return gpiod_line_settings_set_direction(s, GPIOD_LINE_DIRECTION_INPUT) ||
           gpiod_line_settings_set_edge_detection(s, GPIOD_LINE_EDGE_BOTH) ||
           gpiod_line_settings_set_event_clock(s, GPIOD_LINE_CLOCK_MONOTONIC);
}

static int take(struct gov_gpio *g, const struct gov_gpio_config *c, size_t i)
{
    base_cleanup(free_settings) struct gpiod_line_settings *settings = NULL;
    base_cleanup(free_line_config) struct gpiod_line_config *lines = NULL;
    base_cleanup(free_request_config) struct gpiod_request_config *how = NULL;
    base_cleanup(free_info) struct gpiod_chip_info *info = NULL;
    int fd, mode;

    if (c->lines[i].offset < 0) {
        return 0;
    }
    settings = gpiod_line_settings_new();
    lines = gpiod_line_config_new();
    how = gpiod_request_config_new();
    if (!settings || !lines || !how) {
        return -ENOMEM;
    }
    info = gpiod_chip_get_info(g->chip);
    if (!info) {
        return gov_gpio_failure(errno);
    }
    g->offsets[i] = (unsigned)c->lines[i].offset;
    if (g->offsets[i] >= gpiod_chip_info_get_num_lines(info)) {
        return GOV_GPIO_E_LINE;
    }
    if (fill(settings, i == GOV_GPIO_LED, c->lines[i].active_low) ||
        gpiod_line_config_add_line_settings(lines, &g->offsets[i], 1, settings)) {
        return gov_gpio_failure(errno);
    }
    gpiod_request_config_set_consumer(how, GOV_GPIO_CONSUMER);
    g->requests[i] = gpiod_chip_request_lines(g->chip, how, lines);
    if (!g->requests[i]) {
        return gov_gpio_failure(errno);
    }
    /* An edge of a line that nobody waits for must not block who asks for it. */
    fd = gpiod_line_request_get_fd(g->requests[i]);
    mode = fcntl(fd, F_GETFL);
    return mode < 0 || fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0 ? gov_gpio_failure(errno) : 0;
}

int gov_gpio_open(const struct gov_gpio_config *c, struct gov_gpio **ret)
{
    struct gov_gpio *g = calloc(1, sizeof(*g));
    int error = 0;

    if (!g) {
        return -ENOMEM;
    }
    g->events = gpiod_edge_event_buffer_new(GOV_GPIO_EDGES_AT_ONCE);
    if (!g->events) {
        error = -ENOMEM;
    } else {
        g->chip = open_chip(c->chip, g);
        error = g->chip ? 0 : gov_gpio_failure(errno);
    }
    for (size_t i = 0; !error && i < GOV_GPIO_LINE_COUNT; i++) {
        error = take(g, c, i);
    }
    if (error) {
        gov_gpio_close(g);
        return error;
    }
    *ret = g;
    return 0;
}

struct gov_gpio *gov_gpio_close(struct gov_gpio *g)
{
    if (!g) {
        return NULL;
    }
    for (size_t i = 0; i < GOV_GPIO_LINE_COUNT; i++) {
        if (g->requests[i]) {
            gpiod_line_request_release(g->requests[i]);
        }
    }
    if (g->events) {
        gpiod_edge_event_buffer_free(g->events);
    }
    if (g->chip) {
        gpiod_chip_close(g->chip);
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
    return line == GOV_GPIO_LED || !g->requests[line]
               ? -1
               : gpiod_line_request_get_fd(g->requests[line]);
}

int gov_gpio_edges(struct gov_gpio *g, enum gov_gpio_line line, struct gov_gpio_edge *ret,
                   size_t max)
{
    int count;

    if (line == GOV_GPIO_LED || !g->requests[line]) {
        return 0;
    }
    count = gpiod_line_request_read_edge_events(g->requests[line], g->events,
                                                base_min(max, (size_t)GOV_GPIO_EDGES_AT_ONCE));
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -(errno ? errno : EIO);
    }
    for (int i = 0; i < count; i++) {
        struct gpiod_edge_event *e = gpiod_edge_event_buffer_get_event(g->events, (unsigned long)i);

        ret[i].active = gpiod_edge_event_get_event_type(e) == GPIOD_EDGE_EVENT_RISING_EDGE;
        ret[i].at_ns = gpiod_edge_event_get_timestamp_ns(e);
    }
    return count;
}

int gov_gpio_get(struct gov_gpio *g, enum gov_gpio_line line, bool *ret_active)
{
    enum gpiod_line_value value;

    if (!g->requests[line]) {
        return -ENOENT;
    }
    value = gpiod_line_request_get_value(g->requests[line], g->offsets[line]);
    if (value == GPIOD_LINE_VALUE_ERROR) {
        return -(errno ? errno : EIO);
    }
    *ret_active = value == GPIOD_LINE_VALUE_ACTIVE;
    return 0;
}

int gov_gpio_set(struct gov_gpio *g, enum gov_gpio_line line, bool active)
{
    if (!g->requests[line]) {
        return -ENOENT;
    }
    return gpiod_line_request_set_value(g->requests[line], g->offsets[line],
                                        active ? GPIOD_LINE_VALUE_ACTIVE
                                               : GPIOD_LINE_VALUE_INACTIVE) < 0
               ? -(errno ? errno : EIO)
               : 0;
}
