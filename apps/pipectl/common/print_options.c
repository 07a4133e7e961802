/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of pipectl's commands, for completions and tests. Not installed. */
#include "apps/pipectl/common/options.h"
#include "base/cli/cli.h"

int main(void)
{
    cli_print_table(stdout, &ctl_program);
    return 0;
}
