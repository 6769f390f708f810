"""Format-length: rewards by hand at a quarter, a half, three quarters and all of the budget."""

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.methods.format_length import FormatAndLength, format_length
from grupo.testing.batches import batch_of


def rewards(format, length=(1, 2, 3, 4), peak=0.5):
    batch = batch_of(group=[0] * 4, length=list(length), parts={"format": format})
    return FormatAndLength(limit=4, peak=peak)(batch.reward, batch).tolist()


def test_length_pays_most_at_its_peak():
    # l = 1 - (1/2)^2, 1, 1 - 2 (1/2)^2, 1 - 2; f = 1
    assert rewards([1.0] * 4) == [1.75, 2.0, 1.5, 0.0]


def test_without_the_format_nothing_is_gained_and_length_still_costs():
    assert rewards([0.0] * 4) == [0.0, 0.0, 0.0, -1.0]


def test_beyond_the_budget_it_gets_no_worse():
    assert rewards([1.0] * 4, length=(4, 5, 6, 9)) == [0.0] * 4


def test_a_peak_at_the_budget_never_falls():
    assert rewards([1.0] * 4, peak=1.0) == [1 + 1 - 0.75**2, 1.75, 2 - 0.25**2, 2.0]


def test_no_answer_is_read():
    right, wrong = (
        batch_of(group=[0, 0], reward=r, length=[1, 2], parts={"format": [1.0, 0.0]})
        for r in ([1.0, 0.0], [0.0, 1.0])
    )
    credit = format_length(limit=4).credit
    assert torch.equal(right.credited(credit).advantage, wrong.credited(credit).advantage)


def test_the_advantage_is_centred_and_scaled():
    batch = batch_of(group=[0, 0], length=[2, 4], parts={"format": [1.0, 1.0]})
    A = batch.credited(format_length(limit=4).credit).advantage
    assert A[:, 0].tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)  # rewards 2 and 0


def test_it_gives_the_numbers_of_the_authors_code():
    # insightLLM/rl-without-gt @ c1e2077, rl/verl/lib/src/rewards/math_reward.py,
    # RewardMathFn_xrh.__call__; inputs as below, where its two checks of the format agree
    lengths = [100, 1000, 1536, 2000, 2900, 3072]
    recorded = {
        1.0: [
            *[1.125969780815972, 1.8782280815972223, 2.0],
            *[1.8174913194444446, 0.42283799913194464, 0.0],
        ],
        0.0: [0.0, 0.0, 0.0, 0.0, -0.5771620008680554, -1.0],
    }
    for format, expected in recorded.items():
        batch = batch_of(group=[0] * 6, length=lengths, parts={"format": [format] * 6})
        r = FormatAndLength(limit=3072)(batch.reward, batch).tolist()
        assert r == pytest.approx(expected, rel=1e-5)


def test_the_defaults_are_the_papers():
    assert format_length() == format_length(limit=3072, group=8, peak=0.5, kl=0.001)
    assert format_length().loss == Clip() + 0.001 * KL()
    assert format_length(kl=0.0).needs == frozenset()
