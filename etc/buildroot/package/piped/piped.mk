# SPDX-License-Identifier: Apache-2.0
################################################################################
#
# piped
#
################################################################################

PIPED_VERSION = 0.1.0
# The tree that this folder is in.
PIPED_SITE = $(BR2_EXTERNAL_PIPED_PATH)/../..
PIPED_SITE_METHOD = local
PIPED_LICENSE = Apache-2.0
PIPED_LICENSE_FILES = LICENSE
PIPED_INSTALL_STAGING = YES

PIPED_DEPENDENCIES = \
	host-pkgconf \
	host-protobuf-c \
	jansson \
	libsodium \
	libuv \
	onnx-proto \
	openblas \
	protobuf-c \
	pthreadpool \
	systemd

# Buildroot strips what goes to the target.
PIPED_CONF_OPTS = \
	-Dprofile=board \
	-Dstrip_symbols=false \
	-Dsystemd=enabled \
	-Dsystemd_unit_dir=/usr/lib/systemd/system \
	-Donnx_include=$(STAGING_DIR)/usr/include \
	-Dtests=disabled \
	-Dman=disabled \
	-Dsite=disabled \
	-Dpython=disabled \
	-Dhwloc=disabled \
	-Donednn=disabled \
	-Dmpi=disabled \
	-Dreport=disabled

ifeq ($(BR2_PACKAGE_LIBGPIOD2),y)
PIPED_CONF_OPTS += -Dgpio=enabled
PIPED_DEPENDENCIES += libgpiod2
else ifeq ($(BR2_PACKAGE_LIBGPIOD),y)
PIPED_CONF_OPTS += -Dgpio=enabled
PIPED_DEPENDENCIES += libgpiod
else
PIPED_CONF_OPTS += -Dgpio=disabled
endif

ifeq ($(BR2_PACKAGE_JPEG),y)
PIPED_CONF_OPTS += -Djpeg=enabled
PIPED_DEPENDENCIES += jpeg
else
PIPED_CONF_OPTS += -Djpeg=disabled
endif

ifeq ($(BR2_PACKAGE_LIBPNG),y)
PIPED_CONF_OPTS += -Dpng=enabled
PIPED_DEPENDENCIES += libpng
else
PIPED_CONF_OPTS += -Dpng=disabled
endif

ifeq ($(BR2_PACKAGE_NCURSES_WCHAR),y)
PIPED_CONF_OPTS += -Dncurses=enabled
PIPED_DEPENDENCIES += ncurses
else
PIPED_CONF_OPTS += -Dncurses=disabled
endif

ifeq ($(BR2_PACKAGE_GST1_PLUGINS_BASE),y)
PIPED_CONF_OPTS += -Dgstreamer=enabled
PIPED_DEPENDENCIES += gst1-plugins-base
else
PIPED_CONF_OPTS += -Dgstreamer=disabled
endif

ifeq ($(BR2_PACKAGE_XNNPACK),y)
PIPED_CONF_OPTS += -Dxnnpack=enabled
PIPED_DEPENDENCIES += xnnpack
else
PIPED_CONF_OPTS += -Dxnnpack=disabled
endif

ifeq ($(BR2_PACKAGE_PIPED_LINK),y)
PIPED_CONF_OPTS += -Dzmq=enabled
PIPED_DEPENDENCIES += zeromq
else
PIPED_CONF_OPTS += -Dzmq=disabled
endif

ifeq ($(BR2_PACKAGE_PIPED_HTTP),y)
PIPED_CONF_OPTS += -Dhttp=enabled
PIPED_DEPENDENCIES += gnutls libmicrohttpd
else
PIPED_CONF_OPTS += -Dhttp=disabled
endif

# As in systemd/*.sysusers.conf.
define PIPED_USERS
	piped -1 piped -1 * /var/lib/piped - piped-clients,gpio piped
	$(if $(BR2_PACKAGE_PIPED_LINK),piped-link -1 piped-link -1 * /var/lib/piped-link - piped-clients links to other boards)
	$(if $(BR2_PACKAGE_PIPED_HTTP),piped-http -1 piped-http -1 * - - piped-clients models over HTTP)
endef

# Presets enable the sockets at the first boot; the first client starts the service.
define PIPED_INSTALL_INIT_SYSTEMD
	printf 'enable piped.socket\nenable piped-control.socket\ndisable piped.service\ndisable piped-link.service\ndisable piped-http.*\n' \
		> $(@D)/80-piped.preset
	$(INSTALL) -D -m 0644 $(@D)/80-piped.preset \
		$(TARGET_DIR)/usr/lib/systemd/system-preset/80-piped.preset
endef

$(eval $(meson-package))
