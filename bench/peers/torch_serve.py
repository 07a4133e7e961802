#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A network on PyTorch, for a script that runs it in turns with other programs (serve.py says how).

usage: torch_serve.py NAME.pt NAME.input.f32 [THREADS]

NAME.pt is the traced module that bench/models.py --torchscript writes. It is frozen and optimised for inference: batch norms are
folded, and oneDNN computes convolutions in its own layouts. Answers are compared with NAME.output.f32.
"""
import sys
import warnings

import numpy as np
import torch

from serve import read_input, serve

TOLERANCE = 1e-3  # of the largest value: sums in another order


def main():
    warnings.filterwarnings('ignore')
    model, path = sys.argv[1:3]
    torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with torch.inference_mode():
        net = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.load(model).eval()))
        x = torch.from_numpy(read_input(path))
        y = net(x)
        y = np.concatenate([t.to_dense().numpy().ravel() if t.is_mkldnn else t.numpy().ravel()
                            for t in (y if isinstance(y, (tuple, list)) else [y])])
        wanted = np.fromfile(path.replace('.input.f32', '.output.f32'), np.float32)
        if y.size != wanted.size or not np.abs(y - wanted).max() <= TOLERANCE * np.abs(wanted).max():
            sys.exit('its answers are not those of the network')
        serve(lambda: net(x))


main()
