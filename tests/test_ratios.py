from dataclasses import replace
from math import exp

import pytest
import torch

from grupo import ratios
from grupo.testing import batch_of, moved

BATCH = batch_of(group=[0, 0], length=[3, 2])
BATCH = replace(BATCH, turn=torch.tensor([[0, 1, 1], [0, 0, 0]]))
PI = moved(BATCH, [[0.3, -0.1, 0.4], [0.2, 0.6, 9.0]])  # 9: said of padding


def test_a_token_ratio_is_its_own_and_one_where_masked():
    assert ratios.token(PI, BATCH).flatten().tolist() == pytest.approx(
        [exp(0.3), exp(-0.1), exp(0.4), exp(0.2), exp(0.6), 1.0]
    )


def test_a_sequence_ratio_is_the_geometric_mean_of_its_row():
    mean = [(0.3 - 0.1 + 0.4) / 3, (0.2 + 0.6) / 2]
    assert ratios.sequence(PI, BATCH).flatten().tolist() == pytest.approx([*map(exp, mean)])


def test_a_turn_ratio_is_the_geometric_mean_of_its_turn():
    second = exp((-0.1 + 0.4) / 2)
    assert ratios.turn(PI, BATCH).flatten().tolist() == pytest.approx(
        [exp(0.3), second, second, exp(0.4), exp(0.4), 1.0]
    )


def test_no_ratio_has_a_gradient_through_padding():
    for ratio in (ratios.token, ratios.sequence, ratios.turn):
        pi = moved(BATCH, [[0.3, -0.1, 0.4], [0.2, 0.6, 9.0]])
        ratio(pi, BATCH).sum().backward()
        assert pi.logp.grad is not None
        assert pi.logp.grad[1, 2] == 0
        assert (pi.logp.grad[BATCH.mask] > 0).all()
