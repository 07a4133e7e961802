/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/parts.h"

#include "apps/link/front/server.h"
#include "apps/link/hop/hop.h"
#include "apps/link/hop/segments.h"
#include "apps/link/own_state.h"
#include "apps/link/route/route.h"
#include "apps/link/talk.h"
#include "apps/link/weights/fetch.h"
#include "base/base.h"
#include "ipc/server/pool_guard.h"

/* Another try may go well: this computer lacked something for a moment. */
static bool may_pass(int error)
{
    switch (-error) {
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
        return true;
    default:
        return false;
    }
}

int link_parts_read(const struct link_args *a, struct link *l, struct brd_keys *keys)
{
    base_autoclose int folder = brd_open(a->folder, false);
    int rc = folder < 0 ? folder : brd_keys_read(folder, keys);

    if (rc == -ENOENT) {
        link_log("%s: there are no keys, and nothing listens without; run pipectl board key",
                 a->folder);
        return EXIT_CONFIG;
    }
    rc = rc ? rc : brd_list_read(folder, &l->boards);
    if (rc) {
        link_log("%s: %s", a->folder, rc > 0 ? brd_sentence(rc) : strerror(-rc));
        return may_pass(rc) ? 1 : EXIT_CONFIG;
    }
    if (l->boards.count == 0) {
        link_log("%s: no other board is on the list; run pipectl board add", a->folder);
        return EXIT_CONFIG;
    }
    return 0;
}

static void room(void *user, size_t peer)
{
    (void)user; /* the loop looks after every turn */
    (void)peer;
}

int link_parts_connect(const struct link_args *a, struct link *l, const struct brd_keys *keys)
{
    struct lnk_peer peers[BRD_MAX] = {{{0}}};
    struct lnk_config c = {.kind = "zmq",
                           .peers = peers,
                           .peer_count = l->boards.count,
                           .trusted_wire = a->trusted_wire,
                           .part_bytes_max = LNK_PAYLOAD_MAX,
                           .listener = {l, links_up, links_down, links_message, room}};
    char address[BRD_ADDRESS_BYTES], error[256];
    int rc;

    if (brd_address(a->listen, true, address) != 0) {
        link_log("--listen '%s': %s", a->listen, brd_sentence(BRD_E_ADDRESS));
        return EXIT_USAGE;
    }
    c.listen = address;
    memcpy(c.public_key, keys->public_key, BRD_KEY_BYTES);
    memcpy(c.secret_key, keys->secret_key, BRD_KEY_BYTES);
    for (size_t i = 0; i < l->boards.count; i++) {
        const struct brd_board *b = &l->boards.board[i];

        memcpy(peers[i].name, b->name, sizeof(b->name));
        memcpy(peers[i].address, b->address, sizeof(b->address));
        memcpy(peers[i].key, b->key, BRD_KEY_BYTES);
    }
    rc = lnk_transport_open(&c, &l->transport, error);
    explicit_bzero(&c, sizeof(c));
    if (rc < 0) {
        link_log("%s", error);
        return rc == -ENOTSUP ? EXIT_CONFIG : 1;
    }
    link_log("listens at %s, port %u, for %zu boards%s", a->listen,
             lnk_transport_port(l->transport), l->boards.count,
             a->trusted_wire ? ", unencrypted" : "");
    return 0;
}

static void front_vanished(void *user, const char *path, const char *why)
{
    (void)user;
    if (why) {
        link_log("%s vanished and cannot be made again: %s; restart piped-link", path, why);
    } else {
        link_log("%s had vanished and was made again", path);
    }
}

/* Without it, clients of the front are served all the same. */
static void guard_pools(void)
{
    int error = ipc_pool_guard_start();

    if (error < 0) {
        link_log("userfaultfd: %s; a client that punches holes into its pool lets piped-link pay "
                 "for the pages",
                 strerror(-error));
    }
}

/* Without a folder for its socket nothing is spread from here. Return: 0 or -errno. */
static int open_front(struct link *l)
{
    struct front_listener listener = {l, route_frame, route_gone, route_share, front_vanished};
    char path[128];

    if (!l->report_folder) {
        link_log("there is no runtime folder, so models of this board are not spread");
        return 0;
    }
    if ((size_t)snprintf(path, sizeof(path), "%s/frames.sock", l->report_folder) >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    guard_pools();
    return front_open(path, &listener, &l->front);
}

int link_parts_make(const struct link_args *a, struct link *l)
{
    int rc = segments_new(l, hop_segment_changed, &l->segments);

    rc = rc < 0 ? rc : hops_new(&l->hops);
    rc = rc < 0 ? rc : heads_new(&l->heads);
    rc = rc < 0 ? rc : fetch_new(l, l->state_folder, a->store_bytes, route_path);
    rc = rc < 0 ? rc : own_state_new(l, &l->own_state);
    rc = rc < 0 ? rc : talk_new(l, &l->talk);
    rc = rc < 0 ? rc : open_front(l);
    if (rc < 0) {
        link_log("cannot start: %s", strerror(-rc));
    }
    return rc < 0 ? 1 : 0;
}

void link_parts_free(struct link *l)
{
    /* Messages that the transport still has are given back first. */
    l->transport = lnk_transport_close(l->transport);
    fetch_free(l);
    l->talk = talk_free(l->talk);
    l->own_state = own_state_free(l->own_state);
    l->front = front_close(l->front);
    l->heads = heads_free(l->heads);
    l->hops = hops_free(l->hops);
    l->segments = segments_free(l->segments);
    for (size_t i = 0; i < BRD_MAX; i++) {
        brd_state_deinit(&l->peer[i].state);
    }
}
