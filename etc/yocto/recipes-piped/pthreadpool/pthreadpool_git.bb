# SPDX-License-Identifier: Apache-2.0
SUMMARY = "A portable and efficient thread pool"
HOMEPAGE = "https://github.com/Maratyszcza/pthreadpool"
LICENSE = "BSD-2-Clause"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/BSD-2-Clause;md5=cb641bc04cda31daea161b1bc15da69f"

PV = "0.1+git"
SRC_URI = "git://github.com/Maratyszcza/pthreadpool.git;protocol=https;nobranch=1;name=pthreadpool \
    git://github.com/Maratyszcza/FXdiv.git;protocol=https;nobranch=1;name=fxdiv;destsuffix=fxdiv"
SRCREV_pthreadpool = "560c60d342a76076f0557a3946924c6478470044"
SRCREV_fxdiv = "b408327ac2a15ec3e43352421954f5b1967701d1"
SRCREV_FORMAT = "pthreadpool"
S = "${WORKDIR}/git"

inherit cmake

EXTRA_OECMAKE = "-DFXDIV_SOURCE_DIR=${WORKDIR}/fxdiv -DPTHREADPOOL_BUILD_TESTS=OFF -DPTHREADPOOL_BUILD_BENCHMARKS=OFF \
    -DPTHREADPOOL_LIBRARY_TYPE=static -DCMAKE_POSITION_INDEPENDENT_CODE=ON"
# A static library: what links it holds what it needs.
ALLOW_EMPTY:${PN} = "1"
