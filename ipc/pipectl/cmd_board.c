/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl board: this board's keys, and the list of the others. It works without a daemon. */
#include <stdio.h>
#include <string.h>

#include "ipc/boards/known_boards.h"
#include "ipc/pipectl/pipectl.h"

struct place {
    const char *path;
    int folder;
};

/* Says why it failed. @rc: an outcome or -errno. Never a part of a key. Return: CTL_FAILED. */
static int failed(const struct place *p, const char *what, int rc)
{
    const char *slash = what ? "/" : "";

    if (rc > 0) {
        ctl_say("%s%s%s: %s", p->path, slash, what ? what : "", brd_sentence(rc));
    } else {
        ctl_say("%s%s%s: %s", p->path, slash, what ? what : "", strerror(-rc));
    }
    return CTL_FAILED;
}

static int key_command(const struct ctl *ctl, const struct place *p, bool replace)
{
    char text[BRD_KEY_TEXT_BYTES];
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
    if (ctl->json) {
        json_t *v = json_pack("{s:s, s:b}", "public_key", text, "made", made);

        ctl_print_json(v);
        json_decref(v);
    } else {
        puts(text);
    }
    return CTL_DONE;
}

static json_t *board_json(const struct brd_board *b)
{
    char fingerprint[BRD_FINGERPRINT_BYTES];

    brd_fingerprint(b->key, fingerprint);
    return json_pack("{s:s, s:s, s:s}", "name", b->name, "address", b->address, "fingerprint",
                     fingerprint);
}

static int list_command(const struct ctl *ctl, const struct brd_list *list)
{
    static const char *const headings[] = {"name", "address", "fingerprint", NULL};
    json_t *all = json_array();
    struct ctl_table t;

    ctl_table_init(&t, headings, "lll");
    for (size_t i = 0; i < list->count; i++) {
        json_t *b = board_json(&list->board[i]);

        ctl_table_add(&t, "%s\t%s\t%s", ctl_text(b, "name"), ctl_text(b, "address"),
                      ctl_text(b, "fingerprint"));
        json_array_append_new(all, b);
    }
    if (ctl->json) {
        ctl_print_json(all);
        json_decref(t.rows);
    } else {
        ctl_table_print(&t);
    }
    json_decref(all);
    return CTL_DONE;
}

/* Writes the list, unless the change failed. @rc: of the change. Return: an exit code. */
static int write_changed(const struct place *p, const struct brd_list *list, int rc)
{
    if (rc) {
        ctl_say("%s", brd_sentence(rc));
        return CTL_FAILED;
    }
    rc = brd_list_write(p->folder, list);
    return rc ? failed(p, BRD_LIST_FILE, rc) : CTL_DONE;
}

static int add_command(const struct ctl *ctl, const struct place *p, struct brd_list *list,
                       char **argv)
{
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
    if (ctl->json) {
        json_t *b = board_json(&list->board[list->count - 1]);

        ctl_print_json(b);
        json_decref(b);
    } else {
        printf("%s is on the list%s\n", argv[0],
               have ? "" : "; this board has no keys yet: run pipectl board key");
    }
    return CTL_DONE;
}

static int remove_command(const struct ctl *ctl, const struct place *p, struct brd_list *list,
                          const char *name)
{
    int rc = write_changed(p, list, brd_list_remove(list, name));

    if (rc != CTL_DONE) {
        return rc;
    }
    if (ctl->json) {
        ctl_print_json(json_null());
    } else {
        printf("%s is off the list\n", name);
    }
    return CTL_DONE;
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
        return list_command(ctl, &list);
    }
    return argc == 4 ? add_command(ctl, p, &list, argv + 1)
                     : remove_command(ctl, p, &list, argv[1]);
}

int ctl_board(const struct ctl *ctl, int argc, char **argv)
{
    struct place p = {BRD_FOLDER, -1};
    const char *verb;
    bool replace = false;
    int c, rc = CTL_DONE, left;

    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'd') {
            p.path = optarg;
        } else {
            replace = true;
        }
    }
    if (rc) {
        return rc;
    }
    left = argc - optind;
    verb = left > 0 ? argv[optind] : "";
    if (!((strcmp(verb, "key") == 0 && left == 1) || (strcmp(verb, "list") == 0 && left == 1) ||
          (strcmp(verb, "add") == 0 && left == 4) || (strcmp(verb, "remove") == 0 && left == 2))) {
        return ctl_usage(argv[0], "say key, list, add NAME ADDRESS PUBLIC-KEY, or remove NAME");
    }
    if (replace && strcmp(verb, "key") != 0) {
        return ctl_usage(argv[0], "--replace goes with key");
    }
    rc = with_folder(ctl, &p, replace, left, argv + optind);
    base_close_fd(&p.folder);
    return rc;
}
