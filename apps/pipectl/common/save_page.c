/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/page/page.h"
#include "apps/pipectl/common/pipectl.h"
#include "base/base.h"

/* The file is opened once the page is complete. It may be a pipe, so it is written in place. */
int ctl_save_page(const char *path, void (*write)(FILE *to, const json_t *data), const json_t *data)
{
    base_autofree char *page = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&page, &bytes);
    bool well = to != NULL;

    if (to) {
        write(to, data);
        well = fclose(to) == 0;
    }
    to = well ? fopen(path, "we") : NULL;
    if (to) {
        well = fwrite(page, 1, bytes, to) == bytes;
        well = fclose(to) == 0 && well;
    }
    if (!to || !well) {
        ctl_say("cannot write %s: %m", path);
        return CTL_FAILED;
    }
    if (!page_has_charts()) {
        ctl_say("%s", PAGE_NO_CHARTS);
    }
    return CTL_DONE;
}
