/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpio.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "daemon/retune.h"
#include "governor/gpio.h"

/* How often a chip that is gone is looked for, and one that is open is asked whether it still
 * answers: kernels before 6.6 wake nobody when a chip goes. */
#define CHECK_NS BASE_NS_PER_S
#define EDGES 16u
#define INPUTS 2u

_Static_assert(GOV_GPIO_BUTTON < INPUTS && GOV_GPIO_POWER < INPUTS, "inputs come first");

/* On the heap by itself, since it outlives the chip until the loop has closed it. */
struct watch {
    uv_poll_t poll;
    struct dmn_gpio *gpio; /* borrowed */
    enum gov_gpio_line line;
};

struct dmn_gpio {
    struct dmn_daemon *daemon; /* borrowed */
    struct gov_gpio *chip;     /* owned; NULL: not open */
    uv_timer_t timer;
    struct watch *watches[INPUTS]; /* owned by the loop once closing */
    struct gov_debounce inputs[INPUTS];
    enum gov_led led;
    uint64_t led_since_ns, check_ns;
    bool lit, power_known;
    char problem[128]; /* said last; "": none */
    uint64_t presses, opened;
    dmn_gpio_power_fn on_power;
};

static void update(struct dmn_gpio *g);

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The loop lets go of the descriptors, then the chip closes them. */
static void close_chip(struct dmn_gpio *g)
{
    for (size_t i = 0; i < INPUTS; i++) {
        if (g->watches[i]) {
            uv_poll_stop(&g->watches[i]->poll);
            uv_close((uv_handle_t *)&g->watches[i]->poll, on_watch_closed);
            g->watches[i] = NULL;
        }
    }
    g->chip = gov_gpio_close(g->chip);
    g->power_known = false;
}

/* One line in the log when what is wrong changes. */
static void note(struct dmn_gpio *g, const char *problem)
{
    if (strcmp(g->problem, problem) == 0) {
        return;
    }
    snprintf(g->problem, sizeof(g->problem), "%s", problem);
    if (*problem) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0},
                        "GPIO chip \"%s\": %s; it is tried again every second",
                        dmn_config_string(g->daemon->config, DMN_KEY_GPIO_CHIP), problem);
    }
}

static void failed(struct dmn_gpio *g, int error)
{
    char text[sizeof(g->problem)];

    snprintf(text, sizeof(text), "%s", error > 0 ? gov_gpio_outcome(error) : strerror(-error));
    if (g->chip) {
        snprintf(text, sizeof(text), "it went away (%s)", strerror(-error));
    }
    close_chip(g);
    note(g, text);
}

static void pressed(struct dmn_gpio *g)
{
    struct dmn_daemon *d = g->daemon;
    const struct tun_algorithm *algorithm =
        tun_algorithm_find(dmn_config_string(d->config, DMN_KEY_PLANNER_ALGORITHM));

    g->presses++;
    if (d->draining || !algorithm) {
        return;
    }
    for (struct dmn_model *m = d->models; m; m = m->next) {
        struct dmn_retune_request q = {
            .algorithm = algorithm,
            .goal = dmn_goal_config(d->config),
            .options = {.seed = 1,
                        .alpha = (unsigned)dmn_config_int(d->config, DMN_KEY_PLANNER_ALPHA)},
            .cause = "gpio",
        };
        int error = dmn_calibrating(d) ? -EBUSY : dmn_retune_begin(m, &q);

        if (error) {
            dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){.model = m->name},
                            "model %s: the button asks for a retune, which cannot begin: %s",
                            m->name, strerror(-error));
        }
    }
}

static void power_changed(struct dmn_gpio *g, bool active)
{
    struct dmn_daemon *d = g->daemon;

    dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){0}, "the power line is %s",
                    active ? "active" : "inactive");
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        char plan[PL_PLAN_TEXT_MAX];

        if (pl_plan_format(pl_current_plan(m->pipe), &d->eps, plan, sizeof(plan)) < 0) {
            continue;
        }
        dmn_history_add(&d->history,
                        &(struct dmn_history_event){.model = m->name,
                                                    .cause = "gpio",
                                                    .detail = active ? "power line active"
                                                                     : "power line inactive",
                                                    .algorithm = "none",
                                                    .plan_before = plan,
                                                    .plan_after = plan,
                                                    .fps_before = -1,
                                                    .fps_after = -1,
                                                    .outcome = "noted"});
    }
    if (g->on_power) {
        g->on_power(d, active);
    }
}

/* A level of an input, at a time. */
static void feed(struct dmn_gpio *g, enum gov_gpio_line line, bool active, uint64_t at_ns)
{
    if (!gov_debounce_feed(&g->inputs[line], active, at_ns)) {
        return;
    }
    if (line == GOV_GPIO_POWER) {
        power_changed(g, g->inputs[line].settled);
    } else if (g->inputs[line].settled) {
        pressed(g);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    struct dmn_gpio *g = w->gpio;
    struct gov_gpio_edge edges[EDGES];
    uint64_t now = base_now_ns();
    bool level;
    int count, error;

    count = status < 0 ? status : gov_gpio_edges(g->chip, w->line, edges, EDGES);
    for (int i = 0; i < count; i++) {
        /* A kernel with another clock than ours gets the time of reading. */
        uint64_t at = edges[i].at_ns;

        feed(g, w->line, edges[i].active, at <= now && now - at < CHECK_NS ? at : now);
    }
    /* Edges get lost when there are too many; the level does not. */
    error = count < 0 ? count : gov_gpio_get(g->chip, w->line, &level);
    if (error) {
        failed(g, error);
    } else {
        feed(g, w->line, level, now);
        if (events & UV_DISCONNECT) {
            failed(g, -ENODEV);
        }
    }
    update(g);
}

static int watch(struct dmn_gpio *g, enum gov_gpio_line line)
{
    int fd = gov_gpio_fd(g->chip, line), error;
    struct watch *w;
    bool level;

    if (fd < 0) {
        return 0;
    }
    error = gov_gpio_get(g->chip, line, &level);
    if (error) {
        return error;
    }
    gov_debounce_init(&g->inputs[line],
                      (uint64_t)dmn_config_int(g->daemon->config, DMN_KEY_GPIO_DEBOUNCE_MS) *
                          BASE_NS_PER_MS,
                      level, base_now_ns());
    w = calloc(1, sizeof(*w));
    if (!w) {
        return -ENOMEM;
    }
    w->gpio = g;
    w->line = line;
    error = uv_poll_init(&g->daemon->loop, &w->poll, fd);
    if (error) {
        free(w);
        return error;
    }
    w->poll.data = w;
    g->watches[line] = w;
    return uv_poll_start(&w->poll, UV_READABLE | UV_PRIORITIZED | UV_DISCONNECT, on_readable);
}

static void open_chip(struct dmn_gpio *g)
{
    const struct dmn_config *c = g->daemon->config;
    struct gov_gpio_config wanted = {
        .chip = dmn_config_string(c, DMN_KEY_GPIO_CHIP),
        .lines = {
            [GOV_GPIO_BUTTON] = {(int32_t)dmn_config_int(c, DMN_KEY_GPIO_BUTTON),
                                 dmn_config_int(c, DMN_KEY_GPIO_BUTTON_LOW) != 0},
            [GOV_GPIO_POWER] = {(int32_t)dmn_config_int(c, DMN_KEY_GPIO_POWER),
                                dmn_config_int(c, DMN_KEY_GPIO_POWER_LOW) != 0},
            [GOV_GPIO_LED] = {(int32_t)dmn_config_int(c, DMN_KEY_GPIO_LED),
                              dmn_config_int(c, DMN_KEY_GPIO_LED_LOW) != 0},
        }};
    int error = gov_gpio_open(&wanted, &g->chip);

    for (size_t i = 0; !error && i < INPUTS; i++) {
        error = watch(g, (enum gov_gpio_line)i);
    }
    if (error) {
        failed(g, error);
        return;
    }
    g->opened++;
    g->lit = false;
    note(g, "");
    dmn_log_limited(LOG_INFO, (struct dmn_log_fields){0}, "GPIO chip %s is open",
                    gov_gpio_chip(g->chip));
    if (g->watches[GOV_GPIO_POWER]) {
        g->power_known = true;
        if (g->inputs[GOV_GPIO_POWER].settled) {
            power_changed(g, true);
        }
    }
}

/* Is the open chip still there; levels that nobody told of; a closed one again. */
static void check(struct dmn_gpio *g, uint64_t now)
{
    g->check_ns = now + CHECK_NS;
    if (!g->chip) {
        open_chip(g);
    }
    for (size_t i = 0; g->chip && i < INPUTS; i++) {
        bool level;
        int error;

        if (!g->watches[i]) {
            continue;
        }
        error = gov_gpio_get(g->chip, (enum gov_gpio_line)i, &level);
        if (error) {
            failed(g, error);
        } else {
            feed(g, (enum gov_gpio_line)i, level, now);
        }
    }
    if (g->chip) {
        int error = gov_gpio_set(g->chip, GOV_GPIO_LED, g->lit);

        if (error && error != -ENOENT) {
            failed(g, error);
        }
    }
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return b ? base_min(a, b) : a;
}

static void on_timer(uv_timer_t *timer)
{
    update(timer->data);
}

/* Whatever is due now, and the timer to what is due next. */
static void update(struct dmn_gpio *g)
{
    uint64_t now = base_now_ns(), due, led_ns = 0;
    bool lit;

    for (size_t i = 0; g->chip && i < INPUTS; i++) {
        if (g->watches[i] && gov_debounce_due(&g->inputs[i])) {
            feed(g, (enum gov_gpio_line)i, g->inputs[i].seen, now);
        }
    }
    if (now >= g->check_ns) {
        check(g, now);
    }
    lit = gov_led_at(g->led, g->led_since_ns, now, &led_ns);
    if (g->chip && lit != g->lit) {
        int error = gov_gpio_set(g->chip, GOV_GPIO_LED, lit);

        g->lit = lit;
        if (error && error != -ENOENT) {
            failed(g, error);
        }
    }
    due = sooner(g->check_ns, g->chip ? led_ns : 0);
    for (size_t i = 0; g->chip && i < INPUTS; i++) {
        due = sooner(due, g->watches[i] ? gov_debounce_due(&g->inputs[i]) : 0);
    }
    uv_update_time(&g->daemon->loop);
    uv_timer_start(&g->timer, on_timer,
                   due > now ? (due - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS : 1, 0);
}

void dmn_gpio_start(struct dmn_daemon *d)
{
    const struct dmn_config *c = d->config;
    struct dmn_gpio *g;

    if (!*dmn_config_string(c, DMN_KEY_GPIO_CHIP) ||
        (dmn_config_int(c, DMN_KEY_GPIO_BUTTON) < 0 && dmn_config_int(c, DMN_KEY_GPIO_POWER) < 0 &&
         dmn_config_int(c, DMN_KEY_GPIO_LED) < 0)) {
        return;
    }
    g = calloc(1, sizeof(*g));
    if (!g) {
        dmn_log(LOG_ERR, "no memory for GPIO: it is left out");
        return;
    }
    g->daemon = d;
    uv_timer_init(&d->loop, &g->timer);
    g->timer.data = g;
    d->gpio = g;
    dmn_gpio_follow(d);
    update(g);
}

void dmn_gpio_stop(struct dmn_daemon *d)
{
    struct dmn_gpio *g = base_take(d->gpio);

    if (!g) {
        return;
    }
    if (g->chip) {
        gov_gpio_set(g->chip, GOV_GPIO_LED, false);
    }
    close_chip(g);
    uv_close((uv_handle_t *)&g->timer, on_timer_closed);
}

void dmn_gpio_listen(struct dmn_daemon *d, dmn_gpio_power_fn fn)
{
    if (d->gpio) {
        d->gpio->on_power = fn;
    }
}

int dmn_gpio_power(const struct dmn_daemon *d)
{
    return d->gpio && d->gpio->power_known ? d->gpio->inputs[GOV_GPIO_POWER].settled : -1;
}

static enum gov_led led_of(const char *state)
{
    return strcmp(state, "serving") == 0    ? GOV_LED_ON
           : strcmp(state, "tuning") == 0   ? GOV_LED_SLOW
           : strcmp(state, "degraded") == 0 ? GOV_LED_FAST
                                            : GOV_LED_FLASH;
}

void dmn_gpio_follow(struct dmn_daemon *d)
{
    struct dmn_gpio *g = d->gpio;
    enum gov_led led;

    if (!g) {
        return;
    }
    led = led_of(dmn_daemon_state(d));
    if (led != g->led) {
        g->led = led;
        g->led_since_ns = base_now_ns();
        uv_timer_start(&g->timer, on_timer, 0, 0);
    }
}

json_t *dmn_gpio_json(const struct dmn_daemon *d)
{
    const struct dmn_gpio *g = d->gpio;
    json_t *button = NULL, *power = NULL, *led = NULL;

    if (!g) {
        return json_null();
    }
    if (dmn_config_int(d->config, DMN_KEY_GPIO_BUTTON) >= 0) {
        button = json_pack("{s:o, s:I}", "pressed",
                           g->chip ? json_boolean(g->inputs[GOV_GPIO_BUTTON].settled) : json_null(),
                           "presses", (json_int_t)g->presses);
    }
    if (g->power_known) {
        power = json_boolean(g->inputs[GOV_GPIO_POWER].settled);
    }
    if (g->chip && dmn_config_int(d->config, DMN_KEY_GPIO_LED) >= 0) {
        led = json_string(gov_led_name(g->led));
    }
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:I, s:s}", "state", g->chip ? "open" : "unknown", "chip",
        g->chip ? gov_gpio_chip(g->chip) : dmn_config_string(d->config, DMN_KEY_GPIO_CHIP),
        "button", button ? button : json_null(), "power", power ? power : json_null(), "led",
        led ? led : json_null(), "opened", (json_int_t)g->opened, "why", g->problem);
}
