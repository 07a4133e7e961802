# SPDX-License-Identifier: Apache-2.0
"""The networks of the sweep: torchvision's, and those that it lacks, as torch modules.

NETWORKS maps a name to a Network. Each has a small form, for every run, and the real one.
"""
from zoo import detect, mobile, readers, vision, yolo

NETWORKS = {}
for part in (vision, detect, yolo, mobile, readers):
    NETWORKS.update(part.NETWORKS)
