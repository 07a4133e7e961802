/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of a program's commands, for completions and tests. Not installed. CLI_PROGRAM
 * comes from meson. */
#include "base/cli/cli_print.h"

extern const struct cli_program CLI_PROGRAM;

int main(void)
{
    cli_print_table(stdout, &CLI_PROGRAM);
    return 0;
}
