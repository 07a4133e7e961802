/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/show/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DIGITS_LEAST 6 /* each f32 keeps so many */
#define DIGITS_MOST 9  /* and is told from all others by so many */

size_t shw_number_text(float v, char *ret)
{
    int digits = DIGITS_LEAST, n;

    do {
        n = snprintf(ret, SHW_NUMBER_BYTES, "%.*g", digits, (double)v);
    } while (digits++ < DIGITS_MOST && strtof(ret, NULL) != v && isfinite(v));
    return (size_t)n;
}

json_t *shw_number(double v)
{
    char text[SHW_NUMBER_BYTES];

    if (!isfinite((float)v)) {
        return json_null();
    }
    shw_number_text((float)v, text);
    return json_real(strtod(text, NULL));
}
