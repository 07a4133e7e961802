#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/chroot/try_readme.sh [--quickstart] - does what the README says in a fresh Debian 12 with nothing installed
#
# Needs root, mmdebstrap or debootstrap, and network for apt. Each step's time is printed; the last
# line is "N passed, N failed, N skipped". PIPED_CHROOT=DIR keeps the chroot in DIR and uses it
# again; otherwise it is made anew and removed. --quickstart leaves tests/run out.
set -eu
cd "$(dirname "$0")/../.."

skip() {
    echo "skipped: the README in a fresh chroot: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "this needs root"
if command -v mmdebstrap >/dev/null; then
    make_root() { mmdebstrap --quiet --variant=apt --include=ca-certificates bookworm "$1"; }
elif command -v debootstrap >/dev/null; then
    make_root() { debootstrap --variant=minbase --include=ca-certificates bookworm "$1" >/dev/null; }
else
    skip "neither mmdebstrap nor debootstrap is installed"
fi

if [ -n "${PIPED_CHROOT:-}" ]; then
    base=$PIPED_CHROOT
    mkdir -p "$base"
else
    base=$(mktemp -d "${TMPDIR:-/var/tmp}/piped-chroot.XXXXXX")
    # Mounts are in a namespace of their own, below.
    trap 'rm -rf --one-file-system "$base"' EXIT
fi
root=$base/root passed=0 failed=0

timed() { # NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    echo "== $name"
    if "$@"; then
        echo "== $name: done in $((SECONDS - start)) s"
        passed=$((passed + 1))
    else
        echo "FAIL $name after $((SECONDS - start)) s"
        failed=$((failed + 1))
    fi
}

# In the source folder of the chroot. It has no more than what anyone mounts by hand: /proc and /sys. Its root is not a
# mount point, there are no pseudo-terminals and no control groups.
inside() { # COMMAND...
    # shellcheck disable=SC2016
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} \
        ${https_proxy:+https_proxy="$https_proxy"} \
        unshare --mount --pid --fork --kill-child bash -eu -c '
            root=$1
            shift
            mount -t proc proc "$root/proc"
            mount --bind /sys "$root/sys"
            exec chroot "$root" /bin/bash -c '\''cd /src && exec "$@"'\'' inside "$@"
        ' inside "$root" "$@" </dev/null
}

make_chroot() {
    [ -x "$root/bin/bash" ] || make_root "$root" || return 1
    cp /etc/resolv.conf "$root/etc/resolv.conf" || true
    cp /etc/hosts "$root/etc/hosts" || true
    rm -rf "$root/src"
    mkdir -p "$root/src"
    git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- -cf - | tar -xf - -C "$root/src"
}

timed "fresh chroot" make_chroot
timed "etc/quickstart" inside etc/quickstart
timed "etc/quickstart again" inside etc/quickstart
[ "${1:-}" = --quickstart ] || timed "tests/run" inside tests/run
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
