/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "base/base.h"
#include "pipeline/plan.h"
#include "pipeline/plan_why.h"

/* The parser's position. Errors name the byte, so that a long plan can be corrected. */
struct cursor {
    const char *text, *at;
    struct pl_why why;
};

/* The text is untrusted: the message shows one printable character of it. */
static int unexpected(const struct cursor *c, const char *wanted)
{
    size_t at = (size_t)(c->at - c->text);
    unsigned char got = (unsigned char)*c->at;

    if (got == '\0') {
        return pl_refuse(&c->why, "the plan ends at byte %zu where %s is expected", at, wanted);
    }
    if (!isprint(got)) {
        return pl_refuse(&c->why, "%s is expected at byte %zu, not byte 0x%02x", wanted, at, got);
    }
    return pl_refuse(&c->why, "%s is expected at byte %zu, not '%c'", wanted, at, got);
}

static int parse_number(struct cursor *c, const char *what, uint16_t *ret)
{
    uint32_t value = 0;

    if (*c->at < '0' || *c->at > '9') {
        return unexpected(c, what);
    }
    for (; *c->at >= '0' && *c->at <= '9'; c->at++) {
        value = value * 10 + (uint32_t)(*c->at - '0');
        if (value > UINT16_MAX) {
            return pl_refuse(&c->why, "%s at byte %zu is above %u", what, (size_t)(c->at - c->text),
                             UINT16_MAX);
        }
    }
    *ret = (uint16_t)value;
    return 0;
}

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:."

static bool ends_name(const char *s)
{
    return *s == '\0' || strchr(NAME_CHARS, *s) == NULL ||
           (s[0] == 'x' && s[1] >= '0' && s[1] <= '9');
}

/* How much of @text is the EP's name, with the prefix of the board at hand or without; 0: it is
 * another's. */
static size_t match_ep(const char *text, const struct pl_ep_set *eps, const char *name)
{
    size_t n = strnlen(name, PL_EP_NAME_MAX), board = strnlen(eps->board, PL_BOARD_NAME_MAX);

    if (strncmp(text, name, n) == 0 && ends_name(text + n)) {
        return n;
    }
    if (board == 0) {
        return 0;
    }
    if (n > board && strncmp(name, eps->board, board) == 0 && name[board] == ':') {
        n -= board + 1;
        return strncmp(text, name + board + 1, n) == 0 && ends_name(text + n) ? n : 0;
    }
    if (strncmp(text, eps->board, board) == 0 && text[board] == ':' && !memchr(name, ':', n) &&
        strncmp(text + board + 1, name, n) == 0 && ends_name(text + board + 1 + n)) {
        return board + 1 + n;
    }
    return 0;
}

/* Takes the longest EP name that matches, so that a name may contain an 'x'. */
static int parse_ep(struct cursor *c, const struct pl_ep_set *eps, uint16_t *ret)
{
    size_t best = 0;

    for (size_t i = 0; i < eps->count; i++) {
        size_t n = match_ep(c->at, eps, eps->eps[i].name);

        if (n > best) {
            best = n;
            *ret = (uint16_t)i;
        }
    }
    if (best == 0) {
        size_t n = strspn(c->at, NAME_CHARS);

        if (n == 0) {
            return unexpected(c, "the name of an execution place");
        }
        return pl_refuse(&c->why, "there is no execution place \"%.*s\" (byte %zu)",
                         (int)base_min(n, (size_t)PL_EP_NAME_MAX), c->at,
                         (size_t)(c->at - c->text));
    }
    c->at += best;
    return 0;
}

static int parse_batch(struct cursor *c, uint16_t *ret_more)
{
    uint16_t batch;
    int r;

    c->at++;
    r = parse_number(c, "a number of frames", &batch);
    if (r < 0) {
        return r;
    }
    if (batch < 1 || batch > PL_BATCH_MAX) {
        return pl_refuse(&c->why, "a team takes 1 to %u frames at once, not %u (byte %zu)",
                         PL_BATCH_MAX, batch, (size_t)(c->at - c->text));
    }
    *ret_more = (uint16_t)(batch - 1);
    return 0;
}

/* EP[xWIDTH] */
static int parse_cores(struct cursor *c, const struct pl_ep_set *eps, uint16_t *ret_ep,
                       uint16_t *ret_width)
{
    int r = parse_ep(c, eps, ret_ep);

    *ret_width = 1;
    if (r == 0 && *c->at == 'x') {
        c->at++;
        r = parse_number(c, "a width", ret_width);
    }
    return r;
}

/* What follows the first '&'. */
static int parse_also(struct cursor *c, const struct pl_ep_set *eps, struct pl_group *g)
{
    for (size_t i = 0; *c->at == '&'; i++) {
        size_t at = (size_t)(c->at - c->text);
        uint16_t ep, width;
        int r;

        if (i == PL_ALSO_MAX) {
            return pl_refuse(&c->why,
                             "a team has cores of more than %u execution places (byte %zu)",
                             1 + PL_ALSO_MAX, at);
        }
        c->at++;
        r = parse_cores(c, eps, &ep, &width);
        if (r < 0) {
            return r;
        }
        if (width == 0 || width > PL_SPAN_MAX) {
            return pl_refuse(&c->why,
                             "a team over several execution places has 1 to %u cores (byte %zu)",
                             PL_SPAN_MAX, at);
        }
        g->also[i] = (struct pl_also){(uint8_t)ep, (uint8_t)width};
    }
    return 0;
}

static int parse_group(struct cursor *c, const struct pl_ep_set *eps, struct pl_group *ret)
{
    struct pl_group g = {.count = 1};
    int r = parse_cores(c, eps, &g.ep, &g.width);

    r = r == 0 ? parse_also(c, eps, &g) : r;
    if (r == 0 && *c->at == '*') {
        c->at++;
        r = parse_number(c, "a number of teams", &g.count);
    }
    if (r == 0 && *c->at == '/') {
        r = parse_batch(c, &g.more);
    }
    if (r == 0) {
        *ret = g;
    }
    return r;
}

/* [PERCENT%:] before a route; PERCENT has at most one decimal. */
static int parse_share(struct cursor *c, uint16_t *ret)
{
    struct cursor after = *c;
    uint16_t whole, tenth = 0;

    if (parse_number(&after, "a part", &whole) < 0 || (*after.at != '%' && *after.at != '.')) {
        return 0; /* it is a unit */
    }
    if (*after.at == '.') {
        after.at++;
        if (*after.at < '0' || *after.at > '9') {
            return unexpected(&after, "a digit");
        }
        tenth = (uint16_t)(*after.at++ - '0');
    }
    if (after.at[0] != '%' || after.at[1] != ':') {
        return unexpected(&after, "\"%:\"");
    }
    if (whole > 100 || whole * 10u + tenth == 0 || whole * 10u + tenth > PL_SHARE_ALL) {
        return pl_refuse(&c->why, "a route has 0.1 to 100 %% of the frames (byte %zu)",
                         (size_t)(c->at - c->text));
    }
    c->at = after.at + 2;
    *ret = (uint16_t)(whole * 10u + tenth);
    return 0;
}

/* Of several routes that say no parts, all have equal ones. */
static void share_equally(struct pl_plan *p)
{
    size_t routes = pl_plan_routes(p), at = 0;

    for (size_t i = 0; i < p->stage_count; i++) {
        if (p->stages[i].share > 0) {
            return;
        }
    }
    for (size_t i = 0; i < p->stage_count && routes > 1; i++) {
        if (p->stages[i].first_unit == 0) {
            p->stages[i].share =
                (uint16_t)(PL_SHARE_ALL * (at + 1) / routes - PL_SHARE_ALL * at / routes);
            at++;
        }
    }
}

static int parse_stage(struct cursor *c, const struct pl_ep_set *eps, struct pl_stage_plan *ret)
{
    struct pl_stage_plan s = {0};
    int r = parse_share(c, &s.share);

    r = r < 0 ? r : parse_number(c, "a first unit", &s.first_unit);
    if (r < 0) {
        return r;
    }
    if (*c->at != '-') {
        return unexpected(c, "'-'");
    }
    c->at++;
    r = parse_number(c, "a last unit", &s.last_unit);
    if (r < 0) {
        return r;
    }
    if (*c->at != '@') {
        return unexpected(c, "'@'");
    }
    do {
        c->at++;
        if (s.group_count == PL_GROUP_MAX) {
            return pl_refuse(&c->why, "more than %u groups of teams in a stage (byte %zu)",
                             PL_GROUP_MAX, (size_t)(c->at - c->text));
        }
        r = parse_group(c, eps, &s.groups[s.group_count]);
        if (r < 0) {
            return r;
        }
        s.group_count++;
    } while (*c->at == '+');
    *ret = s;
    return 0;
}

/* Return: what follows begins with a part or with unit 0. */
static bool starts_route(const char *text)
{
    size_t digits = strspn(text, "0123456789.");

    return text[digits] == '%' || (digits > 0 && strspn(text, "0") == digits);
}

int pl_plan_parse(const char *text, const struct pl_ep_set *eps, size_t unit_count, char *ret_error,
                  size_t error_bytes, struct pl_plan *ret)
{
    struct cursor c = {text, text, {ret_error, error_bytes}};
    struct pl_plan p = {0};
    int r;

    if (strnlen(text, PL_PLAN_TEXT_MAX) == PL_PLAN_TEXT_MAX) {
        return pl_refuse(&c.why, "the plan is longer than %u bytes", PL_PLAN_TEXT_MAX - 1);
    }
    for (;;) {
        if (p.stage_count == PL_STAGE_MAX) {
            return pl_refuse(&c.why, "more than %u stages", PL_STAGE_MAX);
        }
        r = parse_stage(&c, eps, &p.stages[p.stage_count]);
        if (r < 0) {
            return r;
        }
        p.stage_count++;
        if (*c.at == '\0') {
            break;
        }
        if (*c.at != '|' && *c.at != ';') {
            return unexpected(&c, "'|', ';', '+' or the end");
        }
        if ((*c.at == ';') != starts_route(c.at + 1)) {
            return pl_refuse(&c.why, "a route begins at unit 0, behind a ';' (byte %zu)",
                             (size_t)(c.at - c.text));
        }
        c.at++;
    }
    share_equally(&p);
    r = pl_plan_check(&p, eps, unit_count, ret_error, error_bytes);
    if (r == 0) {
        *ret = p;
    }
    return r;
}

const char *pl_ep_name(const void *eps, size_t ep)
{
    const struct pl_ep_set *set = eps;

    return ep < set->count ? set->eps[ep].name : "?";
}

void pl_group_format(const struct pl_group *g, const char *(*name)(const void *eps, size_t ep),
                     const void *eps, char *ret)
{
    size_t ep = g->ep, width = g->width;

    ret[0] = '\0';
    for (size_t i = 0; i == 0 || (i <= PL_ALSO_MAX && g->also[i - 1].width > 0); i++) {
        if (i > 0) {
            ep = g->also[i - 1].ep;
            width = g->also[i - 1].width;
        }
        (void)base_append(ret, PL_GROUP_TEXT_MAX, "%s%.*s", i > 0 ? "&" : "", (int)PL_EP_NAME_MAX,
                          name(eps, ep));
        if (width != 1) {
            (void)base_append(ret, PL_GROUP_TEXT_MAX, "x%zu", width);
        }
    }
    if (g->count != 1) {
        (void)base_append(ret, PL_GROUP_TEXT_MAX, "*%u", g->count);
    }
    if (g->more != 0) {
        (void)base_append(ret, PL_GROUP_TEXT_MAX, "/%u", g->more + 1u);
    }
}

int pl_plan_format(const struct pl_plan *p, const struct pl_ep_set *eps, char *ret_text,
                   size_t text_bytes)
{
    bool fits = true;

    ret_text[0] = '\0';
    for (size_t i = 0; i < p->stage_count; i++) {
        const struct pl_stage_plan *s = &p->stages[i];

        for (size_t g = 0; g < s->group_count; g++) {
            char head[32] = "+", group[PL_GROUP_TEXT_MAX];

            if (g == 0) {
                size_t n = (size_t)snprintf(head, sizeof(head), "%s",
                                            i == 0               ? ""
                                            : s->first_unit == 0 ? ";"
                                                                 : "|");

                if (s->share > 0) {
                    n += (size_t)snprintf(head + n, sizeof(head) - n,
                                          s->share % 10 ? "%u.%u%%:" : "%u%%:", s->share / 10,
                                          s->share % 10);
                }
                snprintf(head + n, sizeof(head) - n, "%u-%u@", s->first_unit, s->last_unit);
            }
            pl_group_format(&s->groups[g], pl_ep_name, eps, group);
            fits &= base_append(ret_text, text_bytes, "%s%s", head, group);
        }
    }
    if (!fits) {
        snprintf(ret_text, text_bytes, "(too long to print)");
    }
    return fits ? 0 : -ENOSPC;
}
