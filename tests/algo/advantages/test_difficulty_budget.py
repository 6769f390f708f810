"""Budgets by difficulty and uncertainty: the numbers of PixelThink by hand."""

import pytest
import torch

from grupo.algo.advantages.difficulty_budget import DifficultyBudget, uncertainty
from grupo.models.token_statistics import TOKEN_SIGNALS
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError


def scored(difficulty, length, margin=1.0):
    signals = {"top2_margin": [[margin] * length]}
    terms = {"difficulty": [difficulty]}
    batch = make_batch([0], length=[length], reward_terms=terms, signals=signals)
    return DifficultyBudget()(torch.tensor([5.0]), batch).item()


@pytest.mark.parametrize(
    ("difficulty", "length", "margin", "expected"),
    [
        (2.0, 196, 1.0, 5 * (1 - 100 / 500)),  # 100 tokens beyond the budget of 96
        (2.0, 90, 1.0, 5.0),
        (3.5, 900, 1.0, 5.0),
        (4.0, 196, 1.0, 5.0),
        (6.0, 266, 0.6, 5.0),  # the budget is 256 + 25 * 0.4
        (6.0, 276, 0.6, 5 * (1 - 10 / 500)),
        (6.0, 800, 0.6, 0.0),
    ],
)
def test_the_factor_of_a_length(difficulty, length, margin, expected):
    assert scored(difficulty, length, margin) == pytest.approx(expected)


def test_uncertainty_is_a_mean_over_the_tokens_of_a_rollout():
    signals = {"top2_margin": [[0.5, 0.9], [1.0, 0.0]]}
    batch = make_batch([0, 0], length=[2, 1], signals=signals)
    assert uncertainty(batch).tolist() == pytest.approx([0.3, 0.0])


def test_the_margin_of_a_token_is_the_difference_of_the_two_largest_probabilities():
    logp = torch.tensor([[0.2, 0.7, 0.1], [1.0, 0.0, 0.0]]).log()
    margin = TOKEN_SIGNALS["top2_margin"](logp, torch.tensor([0, 0]))
    assert margin.tolist() == pytest.approx([0.5, 1.0])
    assert TOKEN_SIGNALS["top2_margin"](logp[:, :1] * 0, torch.tensor([0, 0])).tolist() == [1, 1]


def test_the_thresholds_are_in_order():
    with pytest.raises(ConfigError, match="hard_from: 2"):
        DifficultyBudget(hard_from=2.0)
