/* SPDX-License-Identifier: Apache-2.0 */
/* operators_doc - prints the tables of model/lower/: name, domain and operator sets of each row */
#include <stdio.h>

#include "model/lower/lowering.h"

int main(void)
{
    for (const struct mdl_lower_row *const *table = mdl_lower_tables; *table; table++) {
        for (const struct mdl_lower_row *row = *table; row->op_type; row++) {
            printf("%s\t%s\t%d\t%d\n", row->op_type, row->domain ? row->domain : "", row->since,
                   row->until);
        }
    }
    return 0;
}
