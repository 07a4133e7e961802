/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, and what is taken from a variable. */
#include "base/base.h"
#include "tests/harness.h"

TEST(an_array_grows_and_keeps_its_items)
{
    base_autofree uint32_t *list = NULL;
    size_t room = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        T_TRUE(base_room(&list, sizeof(*list), i, &room));
        T_LT(i, room);
        list[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        T_EQ(list[i], i);
    }
}

TEST(room_for_many_at_once_is_at_least_doubled)
{
    base_autofree char *text = NULL;
    size_t room = 0;

    T_TRUE(base_room_for(&text, 1, 0, &room));
    T_EQ(room, 0);
    T_TRUE(base_room_for(&text, 1, 100, &room));
    T_EQ(room, 100);
    T_TRUE(base_room_for(&text, 1, 100, &room));
    T_EQ(room, 100);
    T_TRUE(base_room_for(&text, 1, 101, &room));
    T_EQ(room, 202);
}

TEST(more_than_there_can_be_changes_nothing)
{
    base_autofree uint64_t *list = NULL;
    volatile size_t many = SIZE_MAX / 4; /* their bytes overflow */
    uint64_t *before;
    size_t room = 0;

    T_TRUE(base_room_for(&list, sizeof(*list), 4, &room));
    before = list;
    list[3] = 7;
    T_TRUE(!base_room_for(&list, sizeof(*list), many, &room));
    T_TRUE(!base_room_for(&list, sizeof(*list), many / 4, &room));
    T_TRUE(list == before);
    T_EQ(room, 4);
    T_EQ(list[3], 7);
}

TEST(a_descriptor_that_is_taken_is_not_closed)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), taken;

    T_TRUE(fd >= 0);
    {
        base_autoclose int mine = fd;

        taken = base_take_fd(&mine);
        T_EQ(mine, -1);
    }
    T_EQ(taken, fd);
    T_EQ(fcntl(taken, F_GETFD), FD_CLOEXEC);
    close(taken);
}

TEST_MAIN()
