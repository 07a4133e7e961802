/* SPDX-License-Identifier: Apache-2.0 */
/* What systemctl shows of a service that cannot be reached, in words. */
#include <string.h>

#include "apps/pipectl/common/pipectl.h"
#include "tests/harness.h"

#define SERVICE "Id=piped.service\n"
#define SOCKETS                                                                                    \
    "\nId=piped.socket\nActiveState=active\nResult=success\n"                                      \
    "\nId=piped-control.socket\nActiveState=active\nResult=success\n"
#define AGAIN                                                                                      \
    "then sudo systemctl reset-failed piped.service piped.socket piped-control.socket; "           \
    "sudo systemctl enable --now piped.socket piped-control.socket"

static void says(const char *shown, const char *wanted, const char *then)
{
    char text[CTL_SERVICE_TEXT_MAX] = "";
    const char *next = NULL;

    T_EQ(ctl_service_words(shown, text, &next), wanted != NULL);
    T_STR(text, wanted ? wanted : "");
    T_STR(next ? next : "", then);
}

TEST(a_failed_service_says_its_status)
{
    says(SERVICE
         "ActiveState=failed\nResult=exit-code\nStatusText=/etc/a.json:1: log_level: x\n" SOCKETS,
         "the service failed (exit-code): /etc/a.json:1: log_level: x", "");
    says(SERVICE "ActiveState=failed\nResult=signal\nStatusText=\n" SOCKETS,
         "the service failed (signal); journalctl -u piped says more", "");
}

TEST(failed_sockets_are_brought_back)
{
    says(SERVICE "ActiveState=failed\nResult=start-limit-hit\n"
                 "\nId=piped.socket\nActiveState=failed\nResult=service-start-limit-hit\n"
                 "\nId=piped-control.socket\nActiveState=active\n",
         "the service failed (start-limit-hit); journalctl -u piped says more", AGAIN);
    says(SERVICE "ActiveState=inactive\nResult=success\n"
                 "\nId=piped.socket\nActiveState=active\n"
                 "\nId=piped-control.socket\nActiveState=inactive\n",
         "piped-control.socket is inactive", AGAIN);
}

TEST(a_service_that_crashes_again_and_again_is_not_blamed_on_load)
{
    says(SERVICE "ActiveState=activating\nResult=exit-code\nNRestarts=7\n" SOCKETS,
         "the service failed and starts again, restart 7; journalctl -u piped says more", "");
    says(SERVICE "ActiveState=activating\nResult=success\nStatusText=a\nNRestarts=2\n" SOCKETS,
         "the service failed and starts again, restart 2: a; journalctl -u piped says more", "");
    says(SERVICE "ActiveState=activating\nResult=success\nNRestarts=0\n" SOCKETS, NULL, "");
    says(SERVICE "ActiveState=active\nResult=success\nNRestarts=7\n" SOCKETS, NULL, "");
}

TEST(nothing_is_said_where_nothing_is_known)
{
    says("", NULL, "");
    says("\n\n\n", NULL, "");
    says("garbage", NULL, "");
    says(SERVICE "ActiveState=active\nResult=success\n" SOCKETS, NULL, "");
    says(SERVICE "ActiveState=inactive\nLoadState=not-found\n", NULL, "");
}

TEST_MAIN()
