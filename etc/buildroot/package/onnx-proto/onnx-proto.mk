# SPDX-License-Identifier: Apache-2.0
################################################################################
#
# onnx-proto
#
################################################################################

ONNX_PROTO_VERSION = 1.12.0
ONNX_PROTO_SITE = $(call github,onnx,onnx,v$(ONNX_PROTO_VERSION))
ONNX_PROTO_LICENSE = Apache-2.0
ONNX_PROTO_LICENSE_FILES = LICENSE
ONNX_PROTO_INSTALL_STAGING = YES
ONNX_PROTO_INSTALL_TARGET = NO

define ONNX_PROTO_INSTALL_STAGING_CMDS
	$(INSTALL) -D -m 0644 $(@D)/onnx/onnx.proto \
		$(STAGING_DIR)/usr/include/onnx/onnx.proto
endef

$(eval $(generic-package))
