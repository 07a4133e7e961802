/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of docs/netdesc.md and docs/models.md are read by the code they describe. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "model/netdesc/netdesc.h"
#include "model/sidecar.h"
#include "tests/harness.h"

static char error[MDL_ERROR_MAX];

/* The @index-th ```json block of a page, in a static buffer; NULL past the last. */
static char *example(const char *page, size_t index)
{
    static char text[65536];
    const char *docs = getenv("PIPED_DOCS");
    char path[4096], *start = text, *end;
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", docs ? docs : "docs", page);
    f = fopen(path, "r");
    if (!f) {
        return NULL;
    }
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    for (size_t i = 0; i <= index; i++) {
        start = strstr(start, "```json\n");
        if (!start) {
            return NULL;
        }
        start += 8;
    }
    end = strstr(start, "```");
    if (end) {
        *end = '\0';
    }
    return start;
}

TEST(network_description)
{
    struct mdl_graph *g = NULL;
    const char *text = example("netdesc.md", 0);

    T_TRUE(text != NULL);
    T_EQ(mdl_netdesc_read(text, strlen(text), NULL, false, error, &g), 0);
    T_EQ(g->output_count, 1);
    T_STR(g->outputs[0].name, "prob");
    mdl_graph_free(g);
}

TEST(sidecar)
{
    char folder[] = "/tmp/piped-docs-XXXXXX", path[256];
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_sidecar s;
    const char *text = example("models.md", 0);
    base_autoclose int dir_fd = -1;
    FILE *f;
    int r;

    T_TRUE(text != NULL);
    T_EQ(mdl_pool_new(0, &pool), 0);
    T_TRUE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/imagenet.txt", folder);
    f = fopen(path, "w");
    T_TRUE(f && fputs("tench\ngoldfish\n", f) >= 0 && fclose(f) == 0);
    dir_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = mdl_sidecar_parse(text, strlen(text), "example", dir_fd, pool, error, &s);
    unlink(path);
    rmdir(folder);
    T_EQ(r, 0);
    T_EQ(s.height, 224);
    T_EQ(s.label_count, 2);
    T_STR(s.labels[1], "goldfish");
    T_EQ(s.preproc.fit, MDL_FIT_CROP);
    T_NEAR((255 - s.preproc.mean[2]) / s.preproc.std[2], (1 - 0.406) / 0.225, 1e-5);
}

TEST_MAIN()
