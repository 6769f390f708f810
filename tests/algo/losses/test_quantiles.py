"""Losses of quantiles, as in AOT: which pairs are compared, and the gradient, by hand."""

from math import exp, log

import pytest
import torch

from grupo.algo.losses import (
    Logistic,
    LogRatio,
    PairedQuantiles,
    Preference,
    SquaredError,
    UnpairedQuantiles,
)
from grupo.methods.dpo import dpo
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.preference_batches import loss_and_gradient, pair_batch

TWO_PAIRS = {"group": (0, 0, 1, 1), "reward": (1.0, 0.0, 1.0, 0.0), "length": (1, 1, 1, 1)}


def test_differences_are_compared_with_those_of_the_reference_of_equal_rank():
    # all log-probabilities are -1, reference differences -2 and 1; changes make 2 and 0
    batch = pair_batch([2.0, 0.0, -1.0, 0.0], **TWO_PAIRS)
    pi = perturb_logp(batch, [[2.0], [0.0], [0.0], [0.0]])
    loss = PairedQuantiles(SquaredError(0.0))(pi, batch)[:, 0]
    assert loss.tolist() == pytest.approx([1.0, 1.0, 4.0, 4.0])  # (2 - 1)^2, (0 - (-2))^2
    by_pair = Preference(LogRatio(), SquaredError(0.0))(pi, batch)[:, 0]
    assert by_pair.tolist() == pytest.approx([16.0, 16.0, 1.0, 1.0])


def test_a_chosen_answer_is_compared_with_the_rejected_one_of_its_rank():
    # log-ratios: chosen 2 and 1, rejected -1 and 0
    batch = pair_batch([2.0, -1.0, 1.0, 0.0], **TWO_PAIRS)
    pi = perturb_logp(batch, [[0.0]] * 4)
    loss = UnpairedQuantiles(LogRatio(), SquaredError(0.0))(pi, batch)[:, 0]
    assert loss.tolist() == pytest.approx([4.0, 4.0, 4.0, 4.0])  # (2 - 0)^2, (1 - (-1))^2


def test_gradient_of_unpaired_answers():
    batch = pair_batch([2.0, -1.0, 1.0, 0.0], **TWO_PAIRS)
    method = dpo().replace(loss=UnpairedQuantiles(LogRatio(), Logistic(0.5)))
    loss, gradient = loss_and_gradient(method, batch)
    assert loss == pytest.approx(log(1 + exp(-1)))
    pull = 0.5 * 0.5 / (1 + exp(1))  # beta sigmoid(-beta z), the mean of two
    assert gradient == pytest.approx([-pull, pull, -pull, pull])


@pytest.mark.parametrize(
    "loss", [PairedQuantiles(Logistic(0.5)), UnpairedQuantiles(LogRatio(), Logistic(0.5))]
)
def test_one_pair_has_the_loss_of_dpo(loss):
    batch = pair_batch([0.7, -0.4])
    pi = perturb_logp(batch, [[0.3], [0.1]])
    torch.testing.assert_close(loss(pi, batch), dpo(0.5).loss(pi, batch))


def test_a_batch_without_pairs_has_no_loss():
    batch = make_batch([0, 0], [1.0, 1.0], signals={"logp@ref": [[-1.0], [-1.0]]})
    pi = perturb_logp(batch, [[0.5], [0.0]])
    assert PairedQuantiles(Logistic(0.5))(pi, batch).tolist() == [[0.0], [0.0]]
