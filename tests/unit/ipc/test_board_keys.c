/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and the list of boards: what is accepted, what is refused, what files may contain. */
#include <fcntl.h>
#include <sys/stat.h>

#include "ipc/boards/known_boards.h"
#include "tests/harness.h"

static char folder_path[64];

static int fresh_folder(void)
{
    strcpy(folder_path, "/tmp/piped-boards-XXXXXX");
    return mkdtemp(folder_path) ? brd_open(folder_path, true) : -1;
}

static void done(int folder)
{
    static const char *const names[] = {BRD_KEY_FILE, BRD_LIST_FILE, BRD_KEY_FILE ".new",
                                        BRD_LIST_FILE ".new"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        unlinkat(folder, names[i], 0);
    }
    close(folder);
    rmdir(folder_path);
}

static void put_file(int folder, const char *name, const char *text, mode_t mode)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, mode);

    T_TRUE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    fchmod(fd, mode);
    close(fd);
}

TEST(keys_are_made_and_read)
{
    int folder = fresh_folder();
    struct brd_keys made, read_back;
    struct stat st;

    T_EQ(brd_keys_read(folder, &read_back), -ENOENT);
    T_EQ(brd_keys_make(folder, &made), 0);
    T_EQ(brd_keys_read(folder, &read_back), 0);
    T_EQ(memcmp(&made, &read_back, sizeof(made)), 0);
    T_EQ(fstatat(folder, BRD_KEY_FILE, &st, 0), 0);
    T_EQ(st.st_mode & 0777, 0600);
    T_EQ(brd_keys_make(folder, &made), 0);
    T_NE(memcmp(&made, &read_back, sizeof(made)), 0);
    T_EQ(fchmodat(folder, BRD_KEY_FILE, 0640, 0), 0);
    T_EQ(brd_keys_read(folder, &read_back), BRD_E_OPEN);
    done(folder);
}

TEST(broken_key_files)
{
    static const char zero[] = "0000000000000000000000000000000000000000000000000000000000000000";
    int folder = fresh_folder();
    struct brd_keys keys;
    char text[1024], *big = malloc(70000);

    snprintf(text, sizeof(text), "{\"version\":1,\"public_key\":\"%s\",\"secret_key\":\"%s\"}",
             zero, zero);
    memset(big, ' ', 69999);
    big[69999] = 0;
    const char *const bad[] = {"",
                               "{",
                               "[]",
                               "{}",
                               "{\"version\":\"1\"}",
                               "{\"version\":1}",
                               text,
                               "{\"version\":1,\"public_key\":1,\"secret_key\":[]}",
                               "{\"version\":1,\"version\":1}",
                               big};
    for (size_t i = 0; i < base_array_count(bad); i++) {
        put_file(folder, BRD_KEY_FILE, bad[i], 0600);
        T_EQ(brd_keys_read(folder, &keys), BRD_E_FILE);
    }
    put_file(folder, BRD_KEY_FILE, "{\"version\":2}", 0600);
    T_EQ(brd_keys_read(folder, &keys), BRD_E_VERSION);
    unlinkat(folder, BRD_KEY_FILE, 0);
    T_EQ(symlinkat("/etc/passwd", folder, BRD_KEY_FILE), 0); /* is not followed */
    T_EQ(brd_keys_read(folder, &keys), BRD_E_FILE);
    unlinkat(folder, BRD_KEY_FILE, 0);
    T_EQ(mkfifoat(folder, BRD_KEY_FILE, 0600), 0); /* does not block */
    T_EQ(brd_keys_read(folder, &keys), BRD_E_FILE);
    free(big);
    done(folder);
}

static void key_number(int n, char ret[BRD_KEY_TEXT_BYTES])
{
    snprintf(ret, BRD_KEY_TEXT_BYTES, "%062x%02x", n + 9, 9);
}

TEST(addresses)
{
    static const struct {
        const char *text, *is; /* NULL: refused */
    } rows[] = {{"10.0.0.2", "10.0.0.2:8474"},
                {"10.0.0.2:1", "10.0.0.2:1"},
                {"10.0.0.2:65535", "10.0.0.2:65535"},
                {"fd00::0002", "[fd00::2]:8474"},
                {"[fd00::2]", "[fd00::2]:8474"},
                {"[fd00:0::2]:99", "[fd00::2]:99"},
                {"::1", "[::1]:8474"},
                {"", NULL},
                {"10.0.0", NULL},
                {"10.0.0.2:", NULL},
                {"10.0.0.2:0", NULL},
                {"10.0.0.2:65536", NULL},
                {"10.0.0.2:+1", NULL},
                {"10.0.0.2:1 ", NULL},
                {"10.0.0.256", NULL},
                {"0.0.0.0", NULL},
                {"::", NULL},
                {"224.0.0.1", NULL},
                {"255.255.255.255", NULL},
                {"ff02::1", NULL},
                {"board.example", NULL},
                {"[10.0.0.2]:1", NULL},
                {"[fd00::2", NULL},
                {"[fd00::2]1", NULL},
                {"fd00::2%eth0", NULL},
                {"*", NULL},
                {"10.0.0.2;tcp://*", NULL},
                {"1111111111111111111111111111111111111111111111111111111111111111111111", NULL}};
    char got[BRD_ADDRESS_BYTES];

    for (size_t i = 0; i < base_array_count(rows); i++) {
        int rc = brd_address(rows[i].text, false, got);

        T_EQ(rc, rows[i].is ? 0 : BRD_E_ADDRESS);
        if (rows[i].is) {
            T_STR(got, rows[i].is);
        }
    }
    T_EQ(brd_address("0.0.0.0:5", true, got), 0);
    T_STR(got, "0.0.0.0:5");
    T_EQ(brd_address("::", true, got), 0);
}

TEST(what_may_be_on_the_list)
{
    static const char *const bad_names[] = {
        "",    "-a",    "_a",   "a b",  "a:b",      "a@b",
        "a|b", "b2+b3", "../x", "a\nb", "\xc3\xa9", "12345678901234567890123456789012"};
    static const char *const bad_keys[] = {
        "",
        "00",
        "zz",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "09000000000000000000000000000000000000000000000000000000000000800",
        "0900000000000000000000000000000000000000000000000000000000000080",
        "090000000000000000000000000000000000000000000000000000000000000g",
        " 90000000000000000000000000000000000000000000000000000000000000 "};
    struct brd_list list = {0};
    struct brd_keys own = {.public_key = {9}, .secret_key = {8}};
    char key[BRD_KEY_TEXT_BYTES], address[32];

    key_number(1, key);
    for (size_t i = 0; i < base_array_count(bad_names); i++) {
        T_EQ(brd_list_add(&list, bad_names[i], "10.0.0.2", key, NULL), BRD_E_NAME);
    }
    for (size_t i = 0; i < base_array_count(bad_keys); i++) {
        T_EQ(brd_list_add(&list, "b2", "10.0.0.2", bad_keys[i], NULL), BRD_E_KEY);
    }
    T_EQ(brd_list_add(&list, "b2", "10.0.0.2",
                      "0900000000000000000000000000000000000000000000000000000000000000", &own),
         BRD_E_OWN_KEY);
    T_EQ(brd_list_add(&list, "b2", "10.0.0.2",
                      "0800000000000000000000000000000000000000000000000000000000000000", &own),
         BRD_E_SECRET_KEY);
    T_EQ(brd_list_add(&list, "b2", "x", key, &own), BRD_E_ADDRESS);
    T_EQ(list.count, 0);
    T_EQ(brd_list_add(&list, "b2", "10.0.0.2", key, &own), 0);
    T_EQ(brd_list_add(&list, "b3", "10.0.0.3", key, &own), BRD_E_SAME_KEY);
    key_number(2, key);
    T_EQ(brd_list_add(&list, "b2", "10.0.0.3", key, &own), BRD_E_SAME_NAME);
    T_EQ(brd_list_add(&list, "b3", "10.0.0.2:8474", key, &own), BRD_E_SAME_ADDRESS);
    for (int i = 0; list.count < BRD_MAX; i++) {
        char name[16];

        key_number(10 + i, key);
        snprintf(name, sizeof(name), "n%d", i);
        snprintf(address, sizeof(address), "10.0.1.%d", i + 1);
        T_EQ(brd_list_add(&list, name, address, key, &own), 0);
    }
    key_number(99, key);
    T_EQ(brd_list_add(&list, "more", "10.0.2.1", key, &own), BRD_E_TOO_MANY);
    T_EQ(brd_list_remove(&list, "none"), BRD_E_NO_BOARD);
    T_EQ(brd_list_remove(&list, "b2"), 0);
    T_EQ(list.count, BRD_MAX - 1);
    T_STR(list.board[0].name, "n0");
    for (int rc = 1; rc < BRD_E_OUTCOMES; rc++) {
        T_TRUE(*brd_sentence(rc));
    }
}

TEST(the_list_is_kept)
{
    int folder = fresh_folder();
    struct brd_list list, got;
    char key[BRD_KEY_TEXT_BYTES], text[4096];

    T_EQ(brd_list_read(folder, &list), 0);
    T_EQ(list.count, 0);
    key_number(1, key);
    T_EQ(brd_list_add(&list, "b2", "10.0.0.2", key, NULL), 0);
    key_number(2, key);
    T_EQ(brd_list_add(&list, "b3", "[fd00::3]:9", key, NULL), 0);
    put_file(folder, BRD_LIST_FILE ".new", "of a writer that was killed", 0600);
    T_EQ(brd_list_write(folder, &list), 0);
    T_EQ(brd_list_read(folder, &got), 0);
    T_EQ(memcmp(&got, &list, sizeof(got)), 0);
    T_EQ(faccessat(folder, BRD_LIST_FILE ".new", F_OK, 0), -1);
    snprintf(text, sizeof(text),
             "{\"version\":1,\"boards\":["
             "{\"name\":\"a\",\"address\":\"10.0.0.2:1\",\"public_key\":\"%s\"},"
             "{\"name\":\"b\",\"address\":\"10.0.0.3:1\",\"public_key\":\"%s\"}]}",
             key, key);
    put_file(folder, BRD_LIST_FILE, text, 0600);
    T_EQ(brd_list_read(folder, &got), BRD_E_SAME_KEY);
    put_file(folder, BRD_LIST_FILE, "{\"version\":1,\"boards\":[{}]}", 0600);
    T_EQ(brd_list_read(folder, &got), BRD_E_FILE);
    put_file(folder, BRD_LIST_FILE, "{\"version\":1}", 0600);
    T_EQ(brd_list_read(folder, &got), BRD_E_FILE);
    put_file(folder, BRD_LIST_FILE, "{\"version\":7,\"boards\":[]}", 0600);
    T_EQ(brd_list_read(folder, &got), BRD_E_VERSION);
    done(folder);
}

TEST_MAIN()
