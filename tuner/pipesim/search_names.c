/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of searches as a C header, for pipectl, which does not know the tuner. Not
 * installed. */
#include "tuner/search/search_table.h"

#include <stdio.h>

#define HELP(id, name, reads_costs, what) printf("    {\"%s\", \"%s\"}, \\\n", name, what);

int main(void)
{
    puts("/* Made by tuner/pipesim/search_names.c from tuner/search/search_table.h. */");
    puts("#pragma once");
    puts("#define SEARCH_NAMES \"" TUN_SEARCH_NAMES "\"");
    puts("#define SEARCH_HELP \\");
    TUN_SEARCHES(HELP, HELP)
    puts("    {0}");
    return 0;
}
