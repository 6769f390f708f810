import torch

from grupo.credit import OverlongPenalty
from grupo.testing import batch_of


def test_the_overlong_penalty_falls_linearly_over_the_margin():
    batch = batch_of(group=[0] * 5, length=[1, 6, 7, 10, 12])
    shaped = OverlongPenalty(limit=10, margin=4)(torch.ones(5, dtype=torch.float64), batch)
    # free up to 10 - 4 = 6 actions; 7: -1/4; 10: -4/4; beyond the limit still -1
    assert shaped.tolist() == [1.0, 1.0, 0.75, 0.0, 0.0]
