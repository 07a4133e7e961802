/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: in place of live.c and curses.c in a build without ncurses. */
#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/top/top.h"

int top_live(const struct ctl *ctl, const struct ctl_options *o, bool ascii)
{
    return ctl_fail("pipectl was built without ncurses (meson option ncurses); use --once");
}
