/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: messages to boards, lines to the journal. */

#include "apps/link/common/link.h"
#include "base/base.h"
#include "base/cli/cli.h"

#define LINES_MAX 20u /* because of one board, within LINES_NS */
#define LINES_NS (10 * BASE_NS_PER_S)

/* Because of whom lines are written now. The loop's. */
static struct {
    const struct link *link;
    size_t board; /* of no matter while link is NULL */
    struct {
        uint64_t since_ns;
        unsigned count;
    } of[BRD_MAX];
} blamed;

void link_blame(const struct link *l, size_t board)
{
    blamed.link = board < BRD_MAX ? l : NULL;
    blamed.board = board;
}

/* Return: the line is written; @ret_last: and no more for a while. */
static bool may_say(bool *ret_last)
{
    uint64_t now_ns = base_now_ns();

    *ret_last = false;
    if (!blamed.link) {
        return true;
    }
    if (now_ns - blamed.of[blamed.board].since_ns > LINES_NS) {
        blamed.of[blamed.board].since_ns = now_ns;
        blamed.of[blamed.board].count = 0;
    }
    *ret_last = ++blamed.of[blamed.board].count == LINES_MAX;
    return blamed.of[blamed.board].count <= LINES_MAX;
}

void link_log(const char *format, ...)
{
    va_list args;
    bool last;

    if (!may_say(&last)) {
        return;
    }
    va_start(args, format);
    shown_vsay("piped-link", format, args);
    va_end(args);
    if (last) {
        shown_say("piped-link", "more lines because of %s are left out for some seconds",
                  link_name(blamed.link, blamed.board));
    }
}

const char *link_name(const struct link *l, size_t board)
{
    return board == LINK_SELF ? l->name : l->boards.board[board].name;
}

const char *link_print(const struct link *l, size_t board)
{
    return board == LINK_SELF ? l->print : l->peer[board].print;
}

size_t link_find(const struct link *l, const char *print)
{
    for (size_t i = 0; i < l->boards.count; i++) {
        if (strcmp(l->peer[i].print, print) == 0) {
            return i;
        }
    }
    return strcmp(l->print, print) == 0 ? LINK_SELF : LINK_NOBODY;
}

bool link_is_up(const struct link *l, size_t board)
{
    return board == LINK_SELF || (board < l->boards.count && l->peer[board].joined);
}

bool link_takes(const struct link *l, size_t board, uint32_t feature)
{
    return link_is_up(l, board) && (board == LINK_SELF || l->peer[board].features & feature);
}

bool link_cost(const struct link *l, size_t peer, struct lnk_link_cost *ret)
{
    return l->peer[peer].joined && lnk_measure_get(&l->peer[peer].measure, ret) == 0;
}

int link_put(struct link *l, size_t board, enum lnk_lane lane, const struct lnk_message *m,
             const struct lnk_bytes *range, size_t count, void (*released)(void *arg), void *arg)
{
    uint8_t first[LNK_FIRST_MAX];
    uint64_t payload = 0;
    size_t n;

    if (board == LINK_SELF) {
        struct lnk_message copy = *m;

        lnk_count_tail(&copy);
        copy.part = range;
        l->take(l, LINK_SELF, &copy);
        if (released) {
            released(arg);
        }
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        payload += range[i].bytes;
    }
    n = lnk_put(m, payload, first);
    return n ? lnk_send(l->transport, board, lane, (struct lnk_bytes){first, n}, range, count,
                        released, arg)
             : -EINVAL;
}

int link_put_error(struct link *l, size_t board, const struct lnk_error *error, const char *text)
{
    struct lnk_message m = {.header.type = LNK_ERROR, .error = *error};

    m.tail = (const uint8_t *)text;
    m.tail_bytes = strnlen(text, LNK_TEXT_MAX);
    return link_put(l, board, LNK_BULK, &m, NULL, 0, NULL, NULL);
}
