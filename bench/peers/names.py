# SPDX-License-Identifier: Apache-2.0
"""Which ways belong to which program, and what the programs are called."""
PEERS = {'ort': 'ONNX Runtime', 'opencv': 'OpenCV', 'torch': 'PyTorch'}
KINDS = {'piped': 'piped', **PEERS}
OWN = ('piped', 'kernels')  # ways that begin so are ours
BEFORE = '-before'  # behind one of them: that of an older build


def kind_of(way):
    """piped, or the peer that the way is of."""
    return 'piped' if way.startswith(OWN) else way.split('-')[0]


def is_peer(way):
    return kind_of(way) != 'piped'


def batch_of(way):
    """How many frames each run of the way takes: ort-threads@4."""
    return int(way.partition('@')[2] or 1)
