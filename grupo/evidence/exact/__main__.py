"""Measure all methods and write the page and its figure.

python -m grupo.evidence.exact docs/bias.md
"""

import sys
from pathlib import Path

import torch

from grupo.evidence.exact.figure import draw_angles
from grupo.evidence.exact.measure import measure_choices, measure_methods
from grupo.evidence.exact.page import bias_page

if __name__ == "__main__":
    page = Path(sys.argv[1])
    torch.set_num_threads(1)  # the tensors are small
    biases = dict(measure_methods())
    page.write_text(bias_page(measure_choices(), biases), encoding="utf-8")
    draw_angles(biases, page.parent / "images" / "bias.svg")
