/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that come and go in a tree of files; a GPIO chip that is not there. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "daemon/daemon.h"
#include "tests/harness.h"

static struct {
    int calls;
    struct dmn_hotplug_change last;
} told;

static void on_change(struct dmn_daemon *d, const struct dmn_hotplug_change *change)
{
    (void)d;
    told.calls++;
    told.last = *change;
}

struct tree {
    char root[64];
    struct dmn_daemon d;
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
    if (!mkdtemp(t->root) || uv_loop_init(&t->d.loop) < 0) {
        return -1;
    }
    t->d.sysfs_root = t->root;
    online(t, "0-3\n");
    allowed(t, "0-3");
    if (dmn_hotplug_start(&t->d) < 0) {
        return -1;
    }
    dmn_hotplug_listen(&t->d, on_change);
    return 0;
}

/* Return: of uv_loop_close(). */
static int take_down(struct tree *t)
{
    char command[128];

    dmn_hotplug_stop(&t->d);
    uv_run(&t->d.loop, UV_RUN_DEFAULT);
    snprintf(command, sizeof(command), "rm -rf %s", t->root);
    return system(command) ? -1 : uv_loop_close(&t->d.loop);
}

TEST(a_core_that_goes_is_hotplug)
{
    struct tree t;

    T_EQ(set_up(&t), 0);
    T_TRUE(!dmn_hotplug_check(&t.d));
    online(&t, "0-2\n");
    allowed(&t, "0-2"); /* the kernel shows it in both */
    T_TRUE(dmn_hotplug_check(&t.d));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 went");
    T_TRUE(!gov_cpuset_has(&told.last.usable, 3) && gov_cpuset_has(&told.last.usable, 2));
    T_TRUE(!dmn_hotplug_check(&t.d));
    online(&t, "0-3\n");
    allowed(&t, "0-3");
    T_TRUE(dmn_hotplug_check(&t.d));
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
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0));
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0 + later - 1));
    T_TRUE(dmn_hotplug_check_at(&t.d, t0 + later));
    T_STR(told.last.cause, "cpuset");
    T_STR(told.last.text, "cores 1,3 went");
    allowed(&t, "2-3");
    T_TRUE(!dmn_hotplug_check_at(&t.d, 2 * t0));
    T_TRUE(dmn_hotplug_check_at(&t.d, 2 * t0 + later));
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
    T_TRUE(dmn_hotplug_check_at(&t.d, t0));
    online(&t, "0-3\n");
    T_TRUE(dmn_hotplug_check_at(&t.d, t0 + later));
    T_STR(told.last.text, "core 3 came back");
    allowed(&t, "0,2");
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0 + 2 * later));
    T_TRUE(dmn_hotplug_check_at(&t.d, t0 + 3 * later));
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
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0));
    online(&t, "0-2\n");
    T_TRUE(dmn_hotplug_check_at(&t.d, t0 + step));
    T_STR(told.last.cause, "hotplug");
    T_STR(told.last.text, "core 3 went");
    online(&t, "0-3\n");
    T_TRUE(!dmn_hotplug_check_at(&t.d, 2 * t0));
    allowed(&t, "0-3");
    T_TRUE(dmn_hotplug_check_at(&t.d, 2 * t0 + step));
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
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0));
    allowed(&t, "0-3");
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0 + BASE_NS_PER_S));
    allowed(&t, "0-2");
    T_TRUE(!dmn_hotplug_check_at(&t.d, t0 + 2 * BASE_NS_PER_S));
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
        T_TRUE(!dmn_hotplug_check(&t.d));
    }
    put(&t, "proc/self/status", "");
    T_TRUE(!dmn_hotplug_check(&t.d));
    online(&t, "0-1\n");
    T_TRUE(dmn_hotplug_check(&t.d));
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
    T_TRUE(!dmn_hotplug_check(&t.d));
    T_EQ(told.calls, 0);
    T_EQ(take_down(&t), 0);
}

TEST(status_says_what_is_known)
{
    struct tree t;
    json_t *json;

    T_EQ(set_up(&t), 0);
    json = dmn_hotplug_json(&t.d);
    T_STR(json_string_value(json_object_get(json, "online")), "0-3");
    T_STR(json_string_value(json_object_get(json, "allowed")), "0-3");
    json_decref(json);
    T_EQ(take_down(&t), 0);
}

TEST(a_chip_that_is_not_there_stops_nobody)
{
    static const char text[] =
        "{\"gpio\": {\"chip\": \"no such chip\", \"button\": 1, \"led\": 2}}";
    char path[] = "/tmp/piped-gpio-XXXXXX", error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_daemon d = {0};
    int fd = mkstemp(path);
    json_t *json;

    T_TRUE(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    close(fd);
    T_EQ(dmn_config_load(path, true, error, &d.config), 0);
    unlink(path);
    T_EQ(uv_loop_init(&d.loop), 0);
    json = dmn_gpio_json(&d);
    T_TRUE(json_is_null(json)); /* not started */
    dmn_gpio_start(&d);
    T_TRUE(d.gpio);
    uv_run(&d.loop, UV_RUN_ONCE); /* it is tried again */
    json = dmn_gpio_json(&d);
    T_STR(json_string_value(json_object_get(json, "state")), "unknown");
    T_TRUE(json_string_length(json_object_get(json, "why")) > 0);
    json_decref(json);
    T_EQ(dmn_gpio_power(&d), -1);
    dmn_gpio_stop(&d);
    T_TRUE(!d.gpio);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&d.loop), 0);
    dmn_config_free(d.config);
}

TEST(no_line_is_no_gpio)
{
    char error[DMN_CONFIG_ERROR_MAX] = "";
    struct dmn_daemon d = {0};

    T_EQ(dmn_config_load(NULL, false, error, &d.config), 0);
    dmn_gpio_start(&d);
    T_TRUE(!d.gpio);
    dmn_gpio_follow(&d);
    dmn_gpio_stop(&d);
    dmn_config_free(d.config);
}

TEST_MAIN()
