/* SPDX-License-Identifier: Apache-2.0 */
/* What systemctl shows of a service that cannot be reached, in words. */
#include <string.h>

#include "ipc/pipectl/service_state.h"
#include "tests/harness.h"

#define SERVICE "Id=piped.service\n"
#define SOCKETS                                                                                    \
    "\nId=piped.socket\nActiveState=active\nResult=success\n"                                      \
    "\nId=piped-control.socket\nActiveState=active\nResult=success\n"
#define AGAIN                                                                                      \
    "\nthen sudo systemctl reset-failed piped.service piped.socket piped-control.socket; "         \
    "sudo systemctl enable --now piped.socket piped-control.socket"

static void says(const char *shown, const char *wanted)
{
    char text[CTL_SERVICE_TEXT_MAX] = "";

    T_EQ(ctl_service_words(shown, text), wanted != NULL);
    T_STR(text, wanted ? wanted : "");
}

TEST(a_failed_service_says_its_status)
{
    says(SERVICE
         "ActiveState=failed\nResult=exit-code\nStatusText=/etc/a.json:1: log_level: x\n" SOCKETS,
         "the service failed (exit-code): /etc/a.json:1: log_level: x");
    says(SERVICE "ActiveState=failed\nResult=signal\nStatusText=\n" SOCKETS,
         "the service failed (signal); journalctl -u piped says more");
}

TEST(failed_sockets_are_brought_back)
{
    says(SERVICE "ActiveState=failed\nResult=start-limit-hit\n"
                 "\nId=piped.socket\nActiveState=failed\nResult=service-start-limit-hit\n"
                 "\nId=piped-control.socket\nActiveState=active\n",
         "the service failed (start-limit-hit); journalctl -u piped says more" AGAIN);
    says(SERVICE "ActiveState=inactive\nResult=success\n"
                 "\nId=piped.socket\nActiveState=active\n"
                 "\nId=piped-control.socket\nActiveState=inactive\n",
         "piped-control.socket is inactive" AGAIN);
}

TEST(nothing_is_said_where_nothing_is_known)
{
    says("", NULL);
    says("\n\n\n", NULL);
    says("garbage", NULL);
    says(SERVICE "ActiveState=active\nResult=success\n" SOCKETS, NULL);
    says(SERVICE "ActiveState=inactive\nLoadState=not-found\n", NULL);
}

TEST_MAIN()
