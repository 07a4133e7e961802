# SPDX-License-Identifier: Apache-2.0
SUMMARY = "The schema of ONNX files, for building only"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

SRC_URI = "git://github.com/onnx/onnx.git;protocol=https;nobranch=1"
SRCREV = "f7ee1ac60d06abe8e26c9b6bbe1e3db5286b614b"
S = "${WORKDIR}/git"

inherit allarch

do_configure[noexec] = "1"
do_compile[noexec] = "1"
do_install() {
    install -D -m 0644 ${S}/onnx/onnx.proto ${D}${includedir}/onnx/onnx.proto
}
