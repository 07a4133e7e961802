/* SPDX-License-Identifier: Apache-2.0 */
/* The button, the power line and the LED, on the daemon's loop.
 *
 * The configured chip (gpio.chip) is opened when the daemon starts. While it is missing, not
 * permitted or unplugged, the daemon tries again every second. Listeners learn of button presses
 * and of changes of the power line. The LED shows what dmn_gpio_show() sets and is dark while the
 * daemon does not run.
 *
 * Invariant: no GPIO failure stops the daemon. The log gets one line each time the problem changes,
 * and status shows which values are unknown. */
#include "daemon/machine/machine.h"

#include "base/base.h"
#include "daemon/service/listeners.h"
#include "daemon/service/log.h"

/* How often to look for a chip that is gone, and to ask an open one whether it still answers:
 * kernels before 6.6 wake nobody when a chip goes. */
#define CHECK_NS BASE_NS_PER_S
#define EDGES 16u
#define INPUTS 2u

_Static_assert(GOV_GPIO_BUTTON < INPUTS && GOV_GPIO_POWER < INPUTS, "inputs come first");

/* Allocated separately: it outlives the chip until the loop has closed it. */
struct watch {
    uv_poll_t poll;
    struct dmn_gpio *gpio; /* borrowed */
    enum gov_gpio_line line;
};

struct dmn_gpio {
    struct dmn_machine *machine; /* borrowed */
    struct gov_gpio *chip;       /* owned; NULL: not open */
    uv_timer_t timer;
    struct watch *watches[INPUTS]; /* owned by the loop once they are closing */
    struct gov_debounce inputs[INPUTS];
    enum gov_led led;
    uint64_t led_since_ns, check_ns;
    bool lit, power_known;
    char problem[128]; /* logged last; "": none */
    uint64_t presses, opened;
};

static void update(struct dmn_gpio *g);

/* First the loop releases the descriptors, then the chip closes them. */
static void close_chip(struct dmn_gpio *g)
{
    for (size_t i = 0; i < INPUTS; i++) {
        if (g->watches[i]) {
            uv_poll_stop(&g->watches[i]->poll);
            uv_close((uv_handle_t *)&g->watches[i]->poll, dmn_handle_free);
            g->watches[i] = NULL;
        }
    }
    g->chip = gov_gpio_close(g->chip);
    g->power_known = false;
}

/* Logs one line when the problem changes. */
static void note(struct dmn_gpio *g, const char *problem)
{
    if (strcmp(g->problem, problem) == 0) {
        return;
    }
    snprintf(g->problem, sizeof(g->problem), "%s", problem);
    if (*problem) {
        dmn_log_limited(
            LOG_WARNING, (struct dmn_log_fields){0}, "GPIO chip \"%s\": %s; retrying every second",
            dmn_config_string(dmn_machine_config(g->machine), DMN_KEY_GPIO_CHIP), problem);
    }
}

static void failed(struct dmn_gpio *g, int error)
{
    char text[sizeof(g->problem)];

    snprintf(text, sizeof(text), "%s", error > 0 ? gov_gpio_outcome(error) : strerror(-error));
    if (g->chip) {
        snprintf(text, sizeof(text), "it was removed (%s)", strerror(-error));
    }
    close_chip(g);
    note(g, text);
}

/* Sets the LED, if the chip is open and has one. */
static void show(struct dmn_gpio *g, bool lit)
{
    int error = g->chip ? gov_gpio_set(g->chip, GOV_GPIO_LED, lit) : 0;

    g->lit = g->chip ? lit : g->lit;
    if (error && error != -ENOENT) {
        failed(g, error);
    }
}

static void power_changed(struct dmn_gpio *g, bool active)
{
    dmn_log_limited(LOG_NOTICE, (struct dmn_log_fields){0}, "the power line is %s",
                    active ? "active" : "inactive");
    DMN_TELL(g->machine->gpio_listeners, power, active);
}

/* Processes the level of an input at a time. */
static void feed(struct dmn_gpio *g, enum gov_gpio_line line, bool active, uint64_t at_ns)
{
    if (!gov_debounce_feed(&g->inputs[line], active, at_ns)) {
        return;
    }
    if (line == GOV_GPIO_POWER) {
        power_changed(g, g->inputs[line].settled);
    } else if (g->inputs[line].settled) {
        g->presses++;
        DMN_TELL(g->machine->gpio_listeners, pressed);
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
        /* if the kernel's clock is not ours, use the time of reading */
        uint64_t at = edges[i].at_ns;

        feed(g, w->line, edges[i].active, at <= now && now - at < CHECK_NS ? at : now);
    }
    /* edges get lost if there are too many; the level does not */
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
    gov_debounce_init(
        &g->inputs[line],
        (uint64_t)dmn_config_int(dmn_machine_config(g->machine), DMN_KEY_GPIO_DEBOUNCE_MS) *
            BASE_NS_PER_MS,
        level, base_now_ns());
    w = calloc(1, sizeof(*w));
    if (!w) {
        return -ENOMEM;
    }
    w->gpio = g;
    w->line = line;
    error = uv_poll_init(g->machine->loop, &w->poll, fd);
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
    const struct dmn_config *c = dmn_machine_config(g->machine);
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

/* Checks that an open chip still answers and reads its levels; tries to open a closed one. */
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
    show(g, g->lit);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return b ? base_min(a, b) : a;
}

static void on_timer(uv_timer_t *timer)
{
    update(timer->data);
}

/* Does what is due now, and sets the timer to what is due next. */
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
    if (lit != g->lit) {
        show(g, lit);
    }
    due = sooner(g->check_ns, g->chip ? led_ns : 0);
    for (size_t i = 0; g->chip && i < INPUTS; i++) {
        due = sooner(due, g->watches[i] ? gov_debounce_due(&g->inputs[i]) : 0);
    }
    uv_update_time(g->machine->loop);
    uv_timer_start(&g->timer, on_timer,
                   due > now ? (due - now + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS : 1, 0);
}

void dmn_gpio_start(struct dmn_machine *m, enum gov_led led)
{
    const struct dmn_config *c = dmn_machine_config(m);
    struct dmn_gpio *g;

    if (!*dmn_config_string(c, DMN_KEY_GPIO_CHIP) ||
        (dmn_config_int(c, DMN_KEY_GPIO_BUTTON) < 0 && dmn_config_int(c, DMN_KEY_GPIO_POWER) < 0 &&
         dmn_config_int(c, DMN_KEY_GPIO_LED) < 0)) {
        return;
    }
    g = calloc(1, sizeof(*g));
    if (!g) {
        dmn_log(LOG_ERR, "out of memory: GPIO is not used");
        return;
    }
    g->machine = m;
    uv_timer_init(m->loop, &g->timer);
    g->timer.data = g;
    m->gpio = g;
    dmn_gpio_show(m, led);
    update(g);
}

void dmn_gpio_stop(struct dmn_machine *m)
{
    struct dmn_gpio *g = base_take(m->gpio);

    if (!g) {
        return;
    }
    if (g->chip) {
        gov_gpio_set(g->chip, GOV_GPIO_LED, false);
    }
    close_chip(g);
    uv_close((uv_handle_t *)&g->timer, dmn_handle_free);
}

void dmn_gpio_listen(struct dmn_machine *m, struct dmn_gpio_listener *l)
{
    DMN_LISTEN(m->gpio_listeners, l);
}

void dmn_gpio_show(struct dmn_machine *m, enum gov_led led)
{
    struct dmn_gpio *g = m->gpio;

    if (g && led != g->led) {
        g->led = led;
        g->led_since_ns = base_now_ns();
        uv_timer_start(&g->timer, on_timer, 0, 0);
    }
}

bool dmn_gpio_state(const struct dmn_machine *m, struct dmn_gpio_state *ret)
{
    const struct dmn_config *c = dmn_machine_config(m);
    const struct dmn_gpio *g = m->gpio;

    if (!g) {
        return false;
    }
    *ret = (struct dmn_gpio_state){
        .open = g->chip != NULL,
        .chip = g->chip ? gov_gpio_chip(g->chip) : dmn_config_string(c, DMN_KEY_GPIO_CHIP),
        .problem = g->problem,
        .opened = g->opened,
        .has_button = dmn_config_int(c, DMN_KEY_GPIO_BUTTON) >= 0,
        .pressed = g->inputs[GOV_GPIO_BUTTON].settled,
        .presses = g->presses,
        .power_known = g->power_known,
        .power = g->inputs[GOV_GPIO_POWER].settled,
        .has_led = g->chip && dmn_config_int(c, DMN_KEY_GPIO_LED) >= 0,
        .led = g->led,
    };
    return true;
}
