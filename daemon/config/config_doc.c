/* SPDX-License-Identifier: Apache-2.0 */
/* Prints texts generated from the table of configuration keys: "config" is etc/piped.json, "man"
 * the keys of piped.json(5). Not installed. */

#include "base/base.h"
#include "daemon/config/keys.h"

static void print_default(const struct dmn_config_row *row)
{
    char name[64];

    switch (row->type) {
    case DMN_CONFIG_INT:
        printf("%lld", (long long)row->value);
        break;
    case DMN_CONFIG_BOOL:
        printf("%s", row->value ? "true" : "false");
        break;
    case DMN_CONFIG_STRING:
        printf("\"%s\"", row->text);
        break;
    case DMN_CONFIG_ENUM:
        dmn_config_choice_name(row, (size_t)row->value, name, sizeof(name));
        printf("\"%s\"", name);
        break;
    }
}

/* Prints words in lines of at most @width columns, each after @prefix. */
static void wrap(const char *prefix, const char *text, size_t width)
{
    size_t used = 0;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (used && used + 1 + word > width) {
            printf("\n");
            used = 0;
        }
        used += (size_t)printf("%s%.*s", used ? " " : prefix, (int)word, text);
        text += word;
        text += *text == ' ';
    }
    printf("\n");
}

static void range(const struct dmn_config_row *row, char *ret, size_t bytes)
{
    if (row->type == DMN_CONFIG_INT) {
        snprintf(ret, bytes, "%lld to %lld %s", (long long)row->min, (long long)row->max,
                 row->unit);
    } else if (row->type == DMN_CONFIG_BOOL) {
        snprintf(ret, bytes, "true or false");
    } else if (row->type == DMN_CONFIG_ENUM) {
        snprintf(ret, bytes, "one of %s", row->choices);
    } else {
        snprintf(ret, bytes, "text of at most %lld bytes", (long long)row->max);
    }
}

static void print_config(void)
{
    const struct dmn_config_row *rows = dmn_config_rows;
    char group[64] = "", text[160];

    puts("// Configuration of piped, with every default: see piped.json(5).\n"
         "// Files in piped.json.d/*.json override single keys. After a change: pipectl reload.\n"
         "{");
    puts("    // Models to serve. Empty: the small network that comes with piped.\n"
         "    // {\"name\": \"resnet\", \"path\": \"/var/lib/piped/models/resnet50.onnx\"}\n"
         "    \"models\": [],\n");
    puts("    // Execution places instead of those found. Empty: as found.\n"
         "    // {\"name\": \"big\", \"cpus\": \"4-7\", \"speed\": 1.0}\n"
         "    \"eps\": [],\n");
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const char *dot = strchr(rows[i].key, '.');
        const char *indent = dot ? "        " : "    ", *next_dot = NULL;
        char prefix[24];
        bool last_of_group, last = i + 1 == DMN_KEY_COUNT;
        size_t length = dot ? (size_t)(dot - rows[i].key) : 0;

        if (dot && (strlen(group) != length || strncmp(group, rows[i].key, length) != 0)) {
            snprintf(group, sizeof(group), "%.*s", (int)length, rows[i].key);
            printf("    \"%s\": {\n", group);
        }
        snprintf(prefix, sizeof(prefix), "%s// ", indent);
        if (rows[i].advanced && !rows[i - 1].advanced) {
            printf("\n%sAdvanced: the defaults suit.\n", prefix);
        }
        wrap(prefix, rows[i].help, 90);
        range(&rows[i], text, sizeof(text));
        printf("%s// (%s)\n%s\"%s\": ", indent, text, indent, dot ? dot + 1 : rows[i].key);
        print_default(&rows[i]);
        next_dot = last ? NULL : strchr(rows[i + 1].key, '.');
        last_of_group =
            dot && (last || !next_dot || (size_t)(next_dot - rows[i + 1].key) != length ||
                    strncmp(rows[i + 1].key, group, length) != 0);
        printf("%s\n", last || last_of_group ? "" : ",");
        if (last_of_group) {
            printf("    }%s\n", last ? "" : ",");
        }
    }
    puts("}");
}

/* Escapes underscores and asterisks, which scdoc would interpret. */
static void print_escaped(const char *text)
{
    for (; *text; text++) {
        if (strchr("_*\\<>", *text)) {
            putchar('\\');
        }
        putchar(*text);
    }
}

static void print_man_keys(bool advanced)
{
    const struct dmn_config_row *rows = dmn_config_rows;
    char text[160];

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        if (rows[i].advanced != advanced) {
            continue;
        }
        printf("*");
        print_escaped(rows[i].key);
        printf("*\n\t");
        print_escaped(rows[i].help);
        range(&rows[i], text, sizeof(text));
        printf(" Value: ");
        print_escaped(text);
        printf("; default ");
        print_default(&rows[i]);
        printf(".%s\n\n", rows[i].restart ? " Takes effect at the next start." : "");
    }
}

static void print_man(void)
{
    const struct dmn_config_item_row *items = dmn_config_item_rows;

    print_man_keys(false);
    for (size_t i = 0; i < DMN_CONFIG_ITEM_COUNT; i++) {
        printf("*%s[].%s*\n\t", items[i].array, items[i].key);
        print_escaped(items[i].help);
        printf(" Value: %s; %s.\n\n", items[i].type,
               items[i].required   ? "required"
               : items[i].value[0] ? items[i].value
                                   : "optional");
    }
    puts("# ADVANCED KEYS\n\nTheir defaults suit; *pipectl config* lists those that a file sets, "
         "and "
         "with *--all* the others.\n");
    print_man_keys(true);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "config") == 0) {
        print_config();
    } else if (argc == 2 && strcmp(argv[1], "man") == 0) {
        print_man();
    } else {
        fputs("usage: config_doc config|man\n", stderr);
        return 2;
    }
    return 0;
}
