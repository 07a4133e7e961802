/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of pipesim's commands, for completions and tests. Not installed. */
#include "base/cli/cli.h"
#include "tuner/pipesim/pipesim.h"

int main(void)
{
    cli_print_table(stdout, &psim_program);
    return 0;
}
