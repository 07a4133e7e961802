/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files that belong to a model. */
#include <limits.h>
#include <stdio.h>

#include "base/base.h"
#include "base/path_below.h"
#include "tests/harness.h"

TEST(names_are_brought_into_one_form)
{
    static const char *const pairs[][2] = {
        {"w", "w"},          {"./w", "w"},         {".//./w", "w"},
        {"a/w", "a/w"},      {"a//w", "a/w"},      {"a/./w", "a/w"},
        {"a/../w", "w"},     {"a/b/../../w", "w"}, {"a/../b/w", "b/w"},
        {"a/b/../w", "a/w"}, {"w/", "w"},          {"..a/w..", "..a/w.."},
        {"...", "..."},      {"a/b/c/../..", "a"}, {"a b/\xc3\xa9", "a b/\xc3\xa9"},
    };
    char got[PATH_BELOW_MAX];

    for (size_t i = 0; i < base_array_count(pairs); i++) {
        T_EQ(path_below(pairs[i][0], got), 0);
        T_STR(got, pairs[i][1]);
        T_EQ(path_below(pairs[i][1], got), 0);
        T_STR(got, pairs[i][1]);
    }
}

TEST(what_is_no_path_below)
{
    static const char *const bad[] = {"",     "/",    "/w",      ".",         "./",     "..",
                                      "../w", "a/..", "a/../..", "a/../../w", "./../w", "//w"};
    char name[2 * PATH_BELOW_MAX], got[PATH_BELOW_MAX];

    for (size_t i = 0; i < base_array_count(bad); i++) {
        T_EQ(path_below(bad[i], got), PATH_BELOW_E_OUT);
    }
    memset(name, 'a', sizeof(name));
    name[NAME_MAX + 1] = '\0';
    T_EQ(path_below(name, got), PATH_BELOW_E_LONG);
    name[NAME_MAX] = '\0';
    T_EQ(path_below(name, got), 0);
    for (size_t i = 0; i < sizeof(name); i++) {
        name[i] = i % 2 ? '/' : 'a';
    }
    name[PATH_BELOW_MAX - 1] = '\0';
    T_EQ(path_below(name, got), 0);
    name[PATH_BELOW_MAX - 1] = '/';
    name[PATH_BELOW_MAX + 2] = '\0';
    T_EQ(path_below(name, got), PATH_BELOW_E_LONG);
}

TEST_MAIN()
