/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that come and go in a tree of files; a GPIO chip that is not there. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "tests/harness.h"

static struct {
    int calls;
    struct dmn_hotplug_change last;
} told;

static void on_change(void *ctx, const struct dmn_hotplug_change *change)
{
    (void)ctx;
    told.calls++;
    told.last = *change;
}

struct tree {
    char root[64];
    uv_loop_t loop;
    struct dmn_machine m;
};

static void put(const struct tree *t, const char *path, const char *text)
{
    char full[256];
    FILE *f;

    snprintf(full, sizeof(full), "%s/%s", t->root, path);
    for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    f = fopen(full, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void online(const struct tree *t, const char *list)
{
    put(t, "sys/devices/system/cpu/online", list);
}

static void allowed(const struct tree *t, const char *list)
{
    char text[128];

    snprintf(text, sizeof(text), "Name:\tpiped\nCpus_allowed_list:\t%s\n", list);
    put(t, "proc/self/status", text);
}

static int set_up(struct tree *t)
{
    *t = (struct tree){.root = "/tmp/piped-hotplug-XXXXXX"};
    told.calls = 0;
    if (!mkdtemp(t->root) || uv_loop_init(&t->loop) < 0) {
        return -1;
    }
    t->m.loop = &t->loop;
    t->m.sysfs_root = t->root;
    online(t, "0-3\n");
    allowed(t, "0-3");
    if (dmn_hotplug_start(&t->m) < 0) {
        return -1;
    }
    dmn_hotplug_listen(&t->m, on_change, NULL);
    return 0;
}

/* Return: of uv_loop_close(). */
static int take_down(struct tree *t)
{
    char command[128];

    dmn_hotplug_stop(&t->m);
    uv_run(&t->loop, UV_RUN_DEFAULT);
    snprintf(command, sizeof(command), "rm -rf %s", t->root);
    return system(command) ? -1 : uv_loop_close(&t->loop);
}

TEST(a_core_that_goes_is_hotplug)
{
    struct tree t;

    T_EQ(set_up(&t), 0);
    T_TRUE(!dmn_hotplug_check(&t.m, base_now_ns()));
    online(&t, "0-2\n");
    allowed(&t, "0-2"); /* the kernel shows it in both */
    T_TRUE(dmn_hotplug_check(&t.m, base_now_ns()));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 went");
    T_TRUE(!gov_cpuset_has(&told.last.usable, 3) && gov_cpuset_has(&told.last.usable, 2));
    T_TRUE(!dmn_hotplug_check(&t.m, base_now_ns()));
    online(&t, "0-3\n");
    allowed(&t, "0-3");
    T_TRUE(dmn_hotplug_check(&t.m, base_now_ns()));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 came back");
    T_EQ(told.calls, 2);
    T_EQ(take_down(&t), 0);
}

TEST(an_affinity_that_shrinks_is_the_cpuset)
{
    const uint64_t t0 = 10 * BASE_NS_PER_S, later = BASE_NS_PER_S / 4;
    struct tree t;

    T_EQ(set_up(&t), 0);
    allowed(&t, "0,2");
    T_TRUE(!dmn_hotplug_check(&t.m, t0));
    T_TRUE(!dmn_hotplug_check(&t.m, t0 + later - 1));
    T_TRUE(dmn_hotplug_check(&t.m, t0 + later));
    T_STR(told.last.cause, "cpuset");
    T_STR(told.last.text, "cores 1,3 went");
    allowed(&t, "2-3");
    T_TRUE(!dmn_hotplug_check(&t.m, 2 * t0));
    T_TRUE(dmn_hotplug_check(&t.m, 2 * t0 + later));
    T_STR(told.last.text, "core 0 went, core 3 came back");
    T_EQ(told.calls, 2);
    T_EQ(take_down(&t), 0);
}

TEST(a_cpuset_that_shrinks_right_after_a_core_came_is_the_cpuset)
{
    const uint64_t t0 = 10 * BASE_NS_PER_S, later = BASE_NS_PER_S / 4;
    struct tree t;

    T_EQ(set_up(&t), 0);
    online(&t, "0-2\n");
    T_TRUE(dmn_hotplug_check(&t.m, t0));
    online(&t, "0-3\n");
    T_TRUE(dmn_hotplug_check(&t.m, t0 + later));
    T_STR(told.last.text, "core 3 came back");
    allowed(&t, "0,2");
    T_TRUE(!dmn_hotplug_check(&t.m, t0 + 2 * later));
    T_TRUE(dmn_hotplug_check(&t.m, t0 + 3 * later));
    T_STR(told.last.cause, "cpuset");
    T_STR(told.last.text, "cores 1,3 went");
    T_EQ(take_down(&t), 0);
}

/* The kernel takes a core out of the affinity first, and puts it into the list first. */
TEST(affinity_and_list_change_one_after_the_other)
{
    const uint64_t t0 = 10 * BASE_NS_PER_S, step = BASE_NS_PER_S / 5;
    struct tree t;

    T_EQ(set_up(&t), 0);
    allowed(&t, "0-2");
    T_TRUE(!dmn_hotplug_check(&t.m, t0));
    online(&t, "0-2\n");
    T_TRUE(dmn_hotplug_check(&t.m, t0 + step));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 went");
    online(&t, "0-3\n");
    T_TRUE(!dmn_hotplug_check(&t.m, 2 * t0));
    allowed(&t, "0-3");
    T_TRUE(dmn_hotplug_check(&t.m, 2 * t0 + step));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 came back");
    T_EQ(told.calls, 2);
    T_EQ(take_down(&t), 0);
}

/* Gone and back before it was sure: nothing happened. */
TEST(a_moment_of_affinity_is_nothing)
{
    const uint64_t t0 = 10 * BASE_NS_PER_S;
    struct tree t;

    T_EQ(set_up(&t), 0);
    allowed(&t, "0-2");
    T_TRUE(!dmn_hotplug_check(&t.m, t0));
    allowed(&t, "0-3");
    T_TRUE(!dmn_hotplug_check(&t.m, t0 + BASE_NS_PER_S));
    allowed(&t, "0-2");
    T_TRUE(!dmn_hotplug_check(&t.m, t0 + 2 * BASE_NS_PER_S));
    T_EQ(told.calls, 0);
    T_EQ(take_down(&t), 0);
}

TEST(what_cannot_be_read_is_no_change)
{
    static const char *const garbage[] = {"", "\n", "x", "3-1", "0-99999999999", "-", "0-3,\377"};
    struct tree t;

    T_EQ(set_up(&t), 0);
    for (size_t i = 0; i < base_array_count(garbage); i++) {
        online(&t, garbage[i]);
        allowed(&t, garbage[i]);
        T_TRUE(!dmn_hotplug_check(&t.m, base_now_ns()));
    }
    put(&t, "proc/self/status", "");
    T_TRUE(!dmn_hotplug_check(&t.m, base_now_ns()));
    online(&t, "0-1\n");
    T_TRUE(dmn_hotplug_check(&t.m, base_now_ns()));
    T_STR(told.last.text, "cores 2-3 went");
    T_EQ(take_down(&t), 0);
}

/* Nothing usable at all is nonsense: a process runs somewhere. */
TEST(no_core_left_is_not_believed)
{
    struct tree t;

    T_EQ(set_up(&t), 0);
    online(&t, "0-1\n");
    allowed(&t, "2-3");
    T_TRUE(!dmn_hotplug_check(&t.m, base_now_ns()));
    T_EQ(told.calls, 0);
    T_EQ(take_down(&t), 0);
}

TEST(a_chip_that_is_not_there_stops_nobody)
{
    static const char text[] =
        "{\"gpio\": {\"chip\": \"no such chip\", \"button\": 1, \"led\": 2}}";
    char path[] = "/tmp/piped-gpio-XXXXXX", error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_config *config = NULL;
    struct dmn_gpio_state state;
    uv_loop_t loop;
    struct dmn_machine m = {.loop = &loop, .config = &config};
    int fd = mkstemp(path);

    T_TRUE(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    close(fd);
    T_EQ(dmn_config_load(path, true, error, &config), 0);
    unlink(path);
    T_EQ(uv_loop_init(&loop), 0);
    T_TRUE(!dmn_gpio_state(&m, &state)); /* not started */
    dmn_gpio_start(&m, GOV_LED_ON);
    T_TRUE(m.gpio);
    uv_run(&loop, UV_RUN_ONCE); /* it is tried again */
    T_TRUE(dmn_gpio_state(&m, &state));
    T_TRUE(!state.open && state.has_button && !state.has_led);
    T_TRUE(state.problem[0] != '\0');
    dmn_gpio_stop(&m);
    T_TRUE(!m.gpio);
    uv_run(&loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&loop), 0);
    dmn_config_free(config);
}

TEST(no_line_is_no_gpio)
{
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_config *config = NULL;
    struct dmn_machine m = {.config = &config};

    T_EQ(dmn_config_load(NULL, false, error, &config), 0);
    dmn_gpio_start(&m, GOV_LED_ON);
    T_TRUE(!m.gpio);
    dmn_gpio_show(&m, GOV_LED_SLOW);
    dmn_gpio_stop(&m);
    dmn_config_free(config);
}

TEST_MAIN()
