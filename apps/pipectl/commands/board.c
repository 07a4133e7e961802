/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl board: this board's keys, and the list of the others. It works without a daemon. */
#include "apps/pipectl/common/pipectl.h"
#include "ipc/boards/known_boards.h"

struct place {
    const char *path, *runtime;
    int folder;
};

/* Says why it failed. @rc: an outcome or -errno. Never a part of a key. Return: CTL_FAILED. */
static int failed(const struct place *p, const char *what, int rc)
{
    const char *slash = what ? "/" : "";

    if (rc > 0) {
        ctl_say("%s%s%s: %s", p->path, slash, what ? what : "", brd_sentence(rc));
    } else {
        ctl_say("%s%s%s: %s%s", p->path, slash, what ? what : "", strerror(-rc),
                geteuid() != 0 && (rc == -EACCES || rc == -EPERM)
                    ? "; only root and piped-link may use it: sudo pipectl board"
                    : "");
    }
    return CTL_FAILED;
}

static int key_command(const struct ctl *ctl, const struct place *p, bool replace)
{
    char text[BRD_KEY_TEXT_BYTES];
    json_auto_t *v = NULL;
    struct brd_keys keys;
    bool made = replace;
    int rc = replace ? -ENOENT : brd_keys_read(p->folder, &keys);

    if (rc == -ENOENT) {
        made = true;
        rc = brd_keys_make(p->folder, &keys);
    }
    if (rc) {
        return failed(p, BRD_KEY_FILE, rc);
    }
    brd_key_text(keys.public_key, text);
    brd_forget(&keys);
    v = json_pack("{s:s, s:b}", "public_key", text, "made", made);
    ctl_tell(ctl, v, "%s\n", text);
    return CTL_DONE;
}

static json_t *board_json(const struct brd_board *b)
{
    char fingerprint[BRD_FINGERPRINT_BYTES];

    brd_fingerprint(b->key, fingerprint);
    return json_pack("{s:s, s:s, s:s}", "name", b->name, "address", b->address, "fingerprint",
                     fingerprint);
}

/* @l: NULL: nothing is known of it */
static json_t *link_json(const struct brd_link *l)
{
    json_t *v = l ? json_pack("{s:b, s:f, s:I, s:I, s:n, s:n}", "up", l->up, "for_s", l->for_s,
                              "losses", (json_int_t)l->losses, "frames", (json_int_t)l->frames,
                              "message_us", "kilobyte_us")
                  : json_null();

    if (l && l->measured) {
        json_object_set_new(v, "message_us", json_real(l->message_us));
        json_object_set_new(v, "kilobyte_us", json_real(l->kilobyte_us));
    }
    return v;
}

static void link_text(const struct brd_link *l, char *ret, size_t bytes)
{
    char cost[64] = "";

    if (l && l->measured) {
        snprintf(cost, sizeof(cost), ", %.2f ms + %.1f us/kB", l->message_us / 1e3, l->kilobyte_us);
    }
    if (l) {
        snprintf(ret, bytes, "%s for %.0f s%s", l->up ? "up" : "away", l->for_s, cost);
    } else {
        snprintf(ret, bytes, "-");
    }
}

/* Says why the links are not known, unless piped-link just does not run. Return: as they are. */
static const struct brd_report *read_report(const struct place *p, struct brd_report *r)
{
    int rc = brd_report_read(p->runtime, r);

    if (rc == 0 && r->age_s > BRD_REPORT_STALE_S) {
        ctl_say("piped-link has not reported for %.0f s; see journalctl -u piped-link", r->age_s);
    } else if (rc && rc != -ENOENT) {
        struct place runtime = {.path = p->runtime};

        failed(&runtime, BRD_REPORT_FILE, rc);
    }
    return rc == 0 && r->age_s <= BRD_REPORT_STALE_S ? r : NULL;
}

/* What a table of links that are away does not tell. @report: NULL: none. */
static void say_why_away(const struct brd_report *report, size_t count)
{
    size_t up = 0;

    for (size_t i = 0; report && i < report->count; i++) {
        up += report->link[i].up;
    }
    if (!report && count > 0) {
        printf("\npiped-link does not run here\n");
    } else if (report && up < count && report->refused > 0) {
        printf("\nconnections refused: %llu; here or there, a key on the list is not the other "
               "board's\n",
               (unsigned long long)report->refused);
    }
}

static int list_command(const struct ctl *ctl, const struct place *p, const struct brd_list *list)
{
    struct brd_report read;
    const struct brd_report *report = read_report(p, &read);
    json_t *all = json_array();
    struct cli_table t = {.align = "llllr"};

    cli_table_add(&t, "name\taddress\tfingerprint\tlink\tcomputed for it");
    for (size_t i = 0; i < list->count; i++) {
        const struct brd_link *l = report ? brd_report_find(report, list->board[i].name) : NULL;
        json_t *b = board_json(&list->board[i]);
        char text[128];

        link_text(l, text, sizeof(text));
        cli_table_add(&t, "%s\t%s\t%s\t%s\t%llu", ctl_text(b, "name"), ctl_text(b, "address"),
                      ctl_text(b, "fingerprint"), text, l ? (unsigned long long)l->frames : 0);
        json_object_set_new(b, "link", link_json(l));
        json_array_append_new(all, b);
    }
    if (ctl->json) {
        ctl_print_json(all);
        json_decref(t.rows);
    } else {
        cli_table_print(&t);
        say_why_away(report, list->count);
    }
    json_decref(all);
    return CTL_DONE;
}

/* A line ends in it after a change: piped-link has the list that it read. */
static const char *hint(const struct place *p)
{
    struct brd_report r;

    return brd_report_read(p->runtime, &r) == 0 ? "; now run systemctl reload piped-link" : "";
}

/* Writes the list, unless the change failed. @rc: of the change. Return: an exit code. */
static int write_changed(const struct place *p, const struct brd_list *list, int rc)
{
    if (rc) {
        return ctl_fail("%s", brd_sentence(rc));
    }
    rc = brd_list_write(p->folder, list);
    return rc ? failed(p, BRD_LIST_FILE, rc) : CTL_DONE;
}

static int add_command(const struct ctl *ctl, const struct place *p, struct brd_list *list,
                       char **argv)
{
    json_auto_t *b = NULL;
    struct brd_keys keys;
    int rc = brd_keys_read(p->folder, &keys);
    bool have = rc == 0;

    if (rc && rc != -ENOENT) {
        return failed(p, BRD_KEY_FILE, rc);
    }
    rc = brd_list_add(list, argv[0], argv[1], argv[2], have ? &keys : NULL);
    brd_forget(&keys);
    rc = write_changed(p, list, rc);
    if (rc != CTL_DONE) {
        return rc;
    }
    b = board_json(&list->board[list->count - 1]);
    ctl_tell(ctl, b, "%s is on the list%s\n", argv[0],
             have ? hint(p) : "; this board has no keys yet: run pipectl board key");
    return CTL_DONE;
}

static int remove_command(const struct ctl *ctl, const struct place *p, struct brd_list *list,
                          const char *name)
{
    int rc = write_changed(p, list, brd_list_remove(list, name));

    if (rc == CTL_DONE) {
        ctl_tell(ctl, json_null(), "%s is off the list%s\n", name, hint(p));
    }
    return rc;
}

static int with_folder(const struct ctl *ctl, struct place *p, bool replace, int argc, char **argv)
{
    bool is_key = strcmp(argv[0], "key") == 0, is_list = strcmp(argv[0], "list") == 0;
    struct brd_list list;
    int rc;

    p->folder = brd_open(p->path, !is_list);
    if (p->folder < 0) {
        return failed(p, NULL, p->folder);
    }
    if (is_key) {
        return key_command(ctl, p, replace);
    }
    rc = brd_list_read(p->folder, &list);
    if (rc) {
        return failed(p, BRD_LIST_FILE, rc);
    }
    if (is_list) {
        return list_command(ctl, p, &list);
    }
    return argc == 4 ? add_command(ctl, p, &list, argv + 1)
                     : remove_command(ctl, p, &list, argv[1]);
}

int ctl_board(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_options o = {.state_dir = BRD_FOLDER, .runtime_dir = BRD_RUNTIME_FOLDER};
    struct place p;
    const char *verb;
    int rc = ctl_take(argc, argv, &o, NULL), left;

    if (rc) {
        return rc;
    }
    left = argc - optind;
    verb = left > 0 ? argv[optind] : "";
    if (!((strcmp(verb, "key") == 0 && left == 1) || (strcmp(verb, "list") == 0 && left == 1) ||
          (strcmp(verb, "add") == 0 && left == 4) || (strcmp(verb, "remove") == 0 && left == 2))) {
        return ctl_usage(argv[0], "say key, list, add NAME ADDRESS PUBLIC-KEY, or remove NAME");
    }
    if (o.replace && strcmp(verb, "key") != 0) {
        return ctl_usage(argv[0], "--replace goes with key");
    }
    p = (struct place){o.state_dir, o.runtime_dir, -1};
    rc = with_folder(ctl, &p, o.replace, left, argv + optind);
    base_close_fd(&p.folder);
    return rc;
}
