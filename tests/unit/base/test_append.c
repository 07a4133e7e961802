/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are made of several parts. */

#include "base/base.h"
#include "tests/harness.h"

TEST(parts_are_added_while_there_is_room)
{
    char text[8] = "";

    T_TRUE(base_append(text, sizeof(text), "%s", "ab"));
    T_TRUE(base_append(text, sizeof(text), "%s%d", "-", 42));
    T_STR(text, "ab-42");
    T_TRUE(base_append(text, sizeof(text), "%s", "xy"));
    T_STR(text, "ab-42xy"); /* just full */
    T_TRUE(base_append(text, sizeof(text), "%s", ""));
}

TEST(what_does_not_fit_is_cut)
{
    struct {
        char text[4], behind[4];
    } t = {"", "abc"};

    T_TRUE(!base_append(t.text, sizeof(t.text), "%d", 12345));
    T_STR(t.text, "123");
    for (int i = 0; i < 1000; i++) {
        T_TRUE(!base_append(t.text, sizeof(t.text), "%d", i));
    }
    T_STR(t.text, "123");
    T_STR(t.behind, "abc");
}

TEST_MAIN()
