# SPDX-License-Identifier: Apache-2.0
"""torchvision's detectors with their post-processing in the graph."""
from torch import nn
from torchvision.models import detection
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.ssd import SSD, SSDHead
from torchvision.models.detection.ssdlite import SSDLiteHead

from zoo.blocks import Network, conv_bn

CLASSES = 3
PLAIN = {'weights': None, 'weights_backbone': None}


class Boxes(nn.Module):
    """The boxes, scores and classes of the first image."""
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        y = self.net([x[i] for i in range(len(x))])[0]
        return y['boxes'], y['scores'], y['labels']


class Pyramid(nn.Module):
    """Two levels of features."""
    out_channels = 32

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Sequential(conv_bn(3, 16, 3, 2), conv_bn(16, 32, 3, 2), conv_bn(32, 32, 3, 2)),
                                   conv_bn(32, 32, 3, 2)])

    def forward(self, x):
        x = self.down[0](x)
        return {'0': x, '1': self.down[1](x)}


def calm(net, factor):
    """Scores and boxes that differ: at the ends of a sigmoid they are equal, as boxes larger than the picture are."""
    for head in (net.head.classification_head, net.head.regression_head):
        lasts = [getattr(head, part) for part in ('cls_logits', 'bbox_reg') if hasattr(head, part)]
        for last in lasts or head.module_list:
            last.calm = factor
    return net


def small_anchors(ratios):
    return AnchorGenerator(((16,), (32,)), (ratios,) * 2)


FEW = {'detections_per_img': 20}  # far down, neighbours have all but the same score, and rounding decides
LIMITS = {'min_size': 64, 'max_size': 64}


NOTHING = 1  # a score that no box has


def small_retinanet(least=0.05):
    return Boxes(detection.RetinaNet(Pyramid(), CLASSES, anchor_generator=small_anchors((0.5, 1.0, 2.0)),
                                     score_thresh=least, detections_per_img=20, topk_candidates=30, **LIMITS))


def small_fcos(least=0.2):
    return Boxes(detection.FCOS(Pyramid(), CLASSES, anchor_generator=small_anchors((1.0,)), score_thresh=least,
                                detections_per_img=200, topk_candidates=30, **LIMITS))


def small_ssd(lite, least=0.2):
    anchors = DefaultBoxGenerator([[2], [2]], scales=[0.2, 0.5, 0.9])
    head = None
    if lite:
        head = SSDLiteHead([32, 32], anchors.num_anchors_per_location(), CLASSES, nn.BatchNorm2d)
        return Boxes(SSD(Pyramid(), anchors, (64, 64), CLASSES, head=head, score_thresh=least,
                                   detections_per_img=20, topk_candidates=20, image_mean=[0.5] * 3,
                                   image_std=[0.5] * 3))
    head = SSDHead([32, 32], anchors.num_anchors_per_location(), CLASSES)
    return Boxes(SSD(Pyramid(), anchors, (64, 64), CLASSES, head=head, score_thresh=least,
                               detections_per_img=200, topk_candidates=20))


SIZE = (3, 64, 64)
ANSWERS = {'open': 'none', 'outputs': ('boxes', 'scores', 'labels'), 'rows': True}
NETWORKS = {
    'ssd': Network(lambda: small_ssd(False), SIZE,
                   lambda: Boxes(calm(detection.ssd300_vgg16(**FEW, **PLAIN), 0.002)), (3, 300, 300), **ANSWERS),
    'ssdlite': Network(lambda: small_ssd(True), SIZE,
                       lambda: Boxes(detection.ssdlite320_mobilenet_v3_large(**FEW, **PLAIN)), (3, 320, 320), **ANSWERS),
    'retinanet': Network(small_retinanet, SIZE,
                         lambda: Boxes(calm(detection.retinanet_resnet50_fpn(min_size=320, max_size=320, **FEW,
                                                                             **PLAIN), 0.02)),
                         (3, 320, 320), **ANSWERS),
    'ssd_nothing': Network(lambda: small_ssd(False, NOTHING), SIZE, None, None, **ANSWERS),
    'ssdlite_nothing': Network(lambda: small_ssd(True, NOTHING), SIZE, None, None, **ANSWERS),
    'retinanet_nothing': Network(lambda: small_retinanet(NOTHING), SIZE, None, None, **ANSWERS),
    'fcos_nothing': Network(lambda: small_fcos(NOTHING), SIZE, None, None, **ANSWERS),
    'fcos': Network(small_fcos, SIZE,
                    lambda: Boxes(detection.fcos_resnet50_fpn(min_size=320, max_size=320, **FEW, **PLAIN)), (3, 320, 320),
                    **ANSWERS),
}
