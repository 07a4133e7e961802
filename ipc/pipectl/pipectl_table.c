/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of pipectl's commands, for completions and tests. Not installed. */
#include "base/cli/cli_print.h"
#include "ipc/pipectl/pipectl_options.h"

int main(void)
{
    cli_print_table(stdout, &ctl_program);
    return 0;
}
