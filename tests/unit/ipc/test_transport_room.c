/* SPDX-License-Identifier: Apache-2.0 */
/* What is queued for a peer: large messages wait for room, those without ranges do not. */
#include "apps/link/transport/code.h"
#include "tests/harness.h"

#define MAX 1000u

TEST(one_message_fits_however_large)
{
    struct lnk_transport t = {0};

    T_TRUE(!lnk_code_full(&t, 3, 1, UINT64_MAX, MAX));
    t.peer[3].queued_bytes = 1;
    T_TRUE(lnk_code_full(&t, 3, 1, MAX, MAX));
    T_TRUE(!lnk_code_full(&t, 3, 1, MAX - 1, MAX));
    T_TRUE(!lnk_code_full(&t, 2, 1, MAX + 1, MAX));
}

TEST(errors_and_credits_wait_for_nobody)
{
    struct lnk_transport t = {0};

    t.peer[0].queued_bytes = 2 * MAX;
    t.peer[0].queued_messages = LNK_QUEUED_MESSAGES_MAX;
    T_TRUE(lnk_code_full(&t, 0, 1, 1, MAX));
    T_TRUE(!lnk_code_full(&t, 0, 0, 50, MAX));
}

TEST(but_not_without_end)
{
    struct lnk_transport t = {0};

    t.peer[0].queued_messages = 4 * LNK_QUEUED_MESSAGES_MAX;
    T_TRUE(lnk_code_full(&t, 0, 0, 50, MAX));
}

TEST_MAIN()
