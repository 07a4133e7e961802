#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/arm64/prepare.sh FOLDER - a Debian arm64 root for the linker and a cross file for meson, both in FOLDER
#
# FOLDER/root holds the unpacked packages that piped is built from (nothing of them is run to install
# them); FOLDER/cross.ini names the cross compiler, that root, and qemu as what runs the results.
# What is there already is kept. Needs mmdebstrap, gcc-aarch64-linux-gnu and qemu-user-static
# (etc/install-deps arm64) and network for apt.
set -eu
cd "$(dirname "$0")/../.."

folder=$(mkdir -p "$1" && cd "$1" && pwd)
root=$folder/root
libs=/usr/lib/aarch64-linux-gnu
cpu=neoverse-n1 # the first cores with dot products of bytes; they have no SVE

for tool in mmdebstrap aarch64-linux-gnu-gcc qemu-aarch64-static; do
    if ! command -v $tool >/dev/null; then
        echo "prepare.sh: $tool is missing; run etc/install-deps arm64" >&2
        exit 1
    fi
done

packages=$(etc/install-deps --list build | grep -E '^lib.*-dev$' | paste -sd,)
if [ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ]; then
    rm -rf --one-file-system "$root"
    mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages" bookworm "$root"
    echo "$packages" >"$folder/packages"
fi
# links to absolute paths, as of libtinfo.so, would lead out of the root
find "$root$libs" -maxdepth 1 -type l -lname '/lib/*' -exec sh -c 'ln -sfn "$1$(readlink "$2")" "$2"' sh "$root" {} \;

cat >"$folder/cross.ini" <<EOF
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-cpu', '$cpu', '-L', '$root', '-E', 'LD_LIBRARY_PATH=$libs/openblas-pthread']

[built-in options]
c_args = ['--sysroot=$root']
c_link_args = ['--sysroot=$root', '-Wl,-rpath-link,$root$libs/openblas-pthread']

[properties]
sys_root = '$root'
pkg_config_libdir = ['$root$libs/pkgconfig', '$root$libs/openblas-pthread/pkgconfig', '$root/usr/share/pkgconfig']
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'cortex-a72'
endian = 'little'
EOF
