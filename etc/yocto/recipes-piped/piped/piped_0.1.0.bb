# SPDX-License-Identifier: Apache-2.0
SUMMARY = "Serves convolutional networks as pipelines on unequal cores"
DESCRIPTION = "A daemon that serves ONNX models as pipelines of stages, each pinned to its own cores, and moves the \
borders between stages while it serves."
SECTION = "net"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

# Made in the source tree by: git archive --prefix=piped-0.1.0/ -o etc/yocto/recipes-piped/piped/piped-0.1.0.tar.gz HEAD
FILESEXTRAPATHS:prepend := "${THISDIR}:"
SRC_URI = "file://${BP}.tar.gz"

DEPENDS = "jansson libsodium libuv onnx-proto openblas protobuf-c protobuf-c-native pthreadpool"

inherit meson pkgconfig systemd useradd features_check
REQUIRED_DISTRO_FEATURES = "systemd"

# Options that are off are said to be: nothing depends on what happens to be in the sysroot.
PACKAGECONFIG ??= "gpio jpeg link ncurses png"
PACKAGECONFIG[gpio] = "-Dgpio=enabled,-Dgpio=disabled,libgpiod"
PACKAGECONFIG[gstreamer] = "-Dgstreamer=enabled,-Dgstreamer=disabled,gstreamer1.0 gstreamer1.0-plugins-base"
PACKAGECONFIG[http] = "-Dhttp=enabled,-Dhttp=disabled,libmicrohttpd gnutls"
PACKAGECONFIG[hwloc] = "-Dhwloc=enabled,-Dhwloc=disabled,hwloc"
PACKAGECONFIG[jpeg] = "-Djpeg=enabled,-Djpeg=disabled,jpeg"
PACKAGECONFIG[link] = "-Dzmq=enabled,-Dzmq=disabled,zeromq"
PACKAGECONFIG[ncurses] = "-Dncurses=enabled,-Dncurses=disabled,ncurses"
PACKAGECONFIG[png] = "-Dpng=enabled,-Dpng=disabled,libpng"
PACKAGECONFIG[xnnpack] = "-Dxnnpack=enabled,-Dxnnpack=disabled,xnnpack"

DEPENDS += "systemd"
EXTRA_OEMESON = "-Dprofile=board -Dsystemd=enabled -Dtests=disabled -Dman=disabled -Dsite=disabled -Dreport=disabled -Dpython=disabled \
    -Donednn=disabled -Dmpi=disabled -Donnx_include=${STAGING_INCDIR} -Dsystemd_unit_dir=${systemd_system_unitdir}"
# The build leaves symbols: OpenEmbedded takes them out into -dbg packages.
EXTRA_OEMESON += "-Dstrip_symbols=false"

PACKAGES =+ "libpiped pipectl pipesim ${PN}-gstreamer ${PN}-http ${PN}-link"
SYSTEMD_PACKAGES = "${PN} ${@bb.utils.filter('PACKAGECONFIG', 'link', d) and d.getVar('PN') + '-link'} \
    ${@bb.utils.filter('PACKAGECONFIG', 'http', d) and d.getVar('PN') + '-http'}"
# The first client starts piped.service; links and HTTP are started by who has made their keys.
SYSTEMD_SERVICE:${PN} = "piped.socket piped-control.socket piped.service"
SYSTEMD_SERVICE:${PN}-link = "piped-link.service"
SYSTEMD_SERVICE:${PN}-http = "piped-http.socket piped-http.service"
SYSTEMD_AUTO_ENABLE:${PN}-link = "disable"
SYSTEMD_AUTO_ENABLE:${PN}-http = "disable"

# As in systemd/*.sysusers.conf, for images that do not run systemd-sysusers.
USERADD_PACKAGES = "${PN} ${PN}-http ${PN}-link"
GROUPADD_PARAM:${PN} = "--system piped-clients; --system gpio"
USERADD_PARAM:${PN} = "--system --home-dir /var/lib/piped --no-create-home --shell /sbin/nologin --user-group \
    --groups piped-clients,gpio piped"
GROUPADD_PARAM:${PN}-link = "--system piped-clients"
USERADD_PARAM:${PN}-link = "--system --home-dir /var/lib/piped-link --no-create-home --shell /sbin/nologin --user-group \
    --groups piped-clients piped-link"
GROUPADD_PARAM:${PN}-http = "--system piped-clients"
USERADD_PARAM:${PN}-http = "--system --home-dir / --no-create-home --shell /sbin/nologin --user-group \
    --groups piped-clients piped-http"

CONFFILES:${PN} = "${sysconfdir}/piped/piped.json"
FILES:${PN}-gstreamer = "${libdir}/gstreamer-1.0/libgstpiped.so"
FILES:libpiped = "${libdir}/libpiped.so.*"
FILES:pipectl = "${bindir}/pipectl ${datadir}/bash-completion/completions/pipectl \
    ${datadir}/fish/vendor_completions.d/pipectl.fish ${datadir}/zsh/site-functions/_pipectl \
    ${datadir}/piped/models.json"
FILES:pipesim = "${bindir}/pipesim ${datadir}/piped/networks ${datadir}/piped/platforms \
    ${datadir}/bash-completion/completions/pipesim ${datadir}/fish/vendor_completions.d/pipesim.fish \
    ${datadir}/zsh/site-functions/_pipesim"
FILES:${PN}-link = "${bindir}/piped-link ${nonarch_libdir}/sysusers.d/piped-link.conf \
    ${nonarch_libdir}/tmpfiles.d/piped-link.conf ${systemd_system_unitdir}/piped-link.service"
FILES:${PN}-http = "${bindir}/piped-http ${nonarch_libdir}/sysusers.d/piped-http.conf \
    ${systemd_system_unitdir}/piped-http.service ${systemd_system_unitdir}/piped-http.socket"
FILES:${PN} = "${bindir}/piped ${sysconfdir}/piped/piped.json ${datadir}/piped/models ${datadir}/piped/pictures \
    ${datadir}/piped/grafana ${datadir}/piped/prometheus \
    ${nonarch_libdir}/sysusers.d/piped.conf ${nonarch_libdir}/tmpfiles.d/piped.conf \
    ${nonarch_libdir}/systemd/catalog/piped.catalog ${systemd_system_unitdir}/piped.service \
    ${systemd_system_unitdir}/piped.socket ${systemd_system_unitdir}/piped-control.socket"
FILES:${PN}-dev += "${datadir}/varlink/io.piped.varlink"
RRECOMMENDS:${PN} = "pipectl"
RRECOMMENDS:pipectl = "curl"
