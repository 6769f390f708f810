"""HBPO: hand-computed budget rewards and two-level advantages."""

import asyncio
from dataclasses import replace
from math import cos, pi, sqrt

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.hbpo import ZSCORE, BudgetReward, hbpo
from grupo.testing.batches import make_batch
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

PAPER = BudgetReward(4096, 4.0, 1 / 4096)


def budgets(lengths, budget, correct, group=None):
    return make_batch(
        group=group or [0] * len(lengths),
        length=lengths,
        reward_terms={"budget": budget, "correct": correct},
    )


def test_budget_rewards():
    batch = budgets([1024, 512, 100, 1024], [512, 512, 512, 512], [1, 1, 1, 0])
    # 4 cos(pi / 8) - 512 / 4096 beyond the budget, f2(512) = 4 cos(pi / 16) up to it, 0 when wrong
    f2 = 4 * cos(pi / 16)
    assert f2 == pytest.approx(3.9231, abs=1e-4)
    assert PAPER.reward(batch).tolist() == pytest.approx([4 * cos(pi / 8) - 0.125, f2, f2, 0.0])


def test_reward_is_zero_beyond_token_limit():
    batch = budgets([9, 8], [4, 4], [1, 1])
    R = BudgetReward(8, 4.0, 0.0).reward(batch)
    assert R.tolist() == pytest.approx([0.0, 0.0], abs=1e-12)  # too long; cos(pi / 2)


def test_only_group_term_remains_when_all_are_correct_within_budget():
    batch = budgets([1, 1, 1, 1], [512, 512, 2048, 2048], [1, 1, 1, 1])
    # f2 = 3.9231 and 2.8284: no subgroup falls short of its full reward
    half = (4 * cos(pi / 16) - 4 * cos(pi / 4)) / 2
    A = half / (sqrt(4 * half**2 / 3) + 1e-6)
    assert PAPER(batch.reward, batch).tolist() == pytest.approx([A, A, -A, -A])


def test_failed_subgroup_has_negative_advantage():
    batch = budgets([1, 1, 1, 1], [512, 512, 2048, 2048], [1, 0, 0, 0])
    f2, g2 = 4 * cos(pi / 16), 4 * cos(pi / 4)
    std = sqrt((9 / 16 + 3 / 16) * f2**2 / 3)  # R = [f2, 0, 0, 0]
    assert PAPER(batch.reward, batch).tolist() == pytest.approx(
        [
            f2 / 2 - f2 + 0.75 * f2 / (std + 1e-6),
            f2 / 2 - f2 - 0.25 * f2 / (std + 1e-6),
            -g2 - 0.25 * f2 / (std + 1e-6),
            -g2 - 0.25 * f2 / (std + 1e-6),
        ]
    )


def test_environment_reward_is_ignored():
    batch = budgets([1, 2], [1, 1], [1, 0])
    other = replace(batch, reward=batch.reward + 5)
    assert torch.equal(PAPER(batch.reward, batch), PAPER(other.reward, other))


def test_matches_reference_implementation():
    # ZJU-REAL/HBPO @ 5c8991d, rllm/rewards/math_reward.py, the lines of the hierarchical reward,
    # then verl/trainer/ppo/core_algos.py, compute_grpo_outcome_advantage; inputs as below, none of
    # them so short that f1(n, b) < f2(b). Pi is 3.1416 there, and the first term added twice
    batch = budgets(
        [500, 900, 600, 1500, 2100, 2000, 2560, 512],
        [512, 512, 512, 1024, 1024, 2560, 2560, 512],
        [1, 1, 0, 1, 0, 1, 1, 1],
        group=[0] * 5 + [1] * 3,
    )
    R = PAPER.reward(batch)
    expected = [3.923140763, 3.669377045, 0.0, 3.240027083, 0.0]
    expected += [2.222273297, 2.222273297, 3.923140763]
    assert R.tolist() == pytest.approx(expected, rel=1e-5)
    twice = 2 * PAPER(batch.reward, batch) - ZSCORE(R, batch)
    expected = [-1.903095412, -2.030438342, -3.87179388, -3.612296802, -5.238197258]
    expected += [-0.5773496813, -0.5773496813, 1.154699363]
    assert twice.tolist() == pytest.approx(expected, rel=2e-5)


def test_loss_is_mean_over_all_tokens():
    weight = hbpo().aggregation(budgets([1, 3], [4, 4], [1, 1]))
    assert weight.tolist() == [[0.25, 0.0, 0.0], [0.25] * 3]  # of 1 + 3 tokens


def test_defaults_match_paper():
    method = hbpo()
    assert method.sampler.group_size == 16
    assert method.updates == Updates(minibatches=4)
    assert method.advantage == PAPER
    assert (method.loss.clip_low, method.loss.clip_high) == (0.2, 0.28)
    assert method.requires.all_signals == frozenset()


def test_each_quarter_of_a_group_states_its_budget():
    group = asyncio.run(hbpo().sampler(TASK, Once(), script(lambda context, key: ".")))
    stated = [
        f"<think> I will answer the question with {n} tokens." for n in (512, 1024, 2048, 2560)
    ]
    assert [rollout.text for rollout in group.rollouts] == [text for text in stated for _ in "4444"]
    values = [rollout.reward_terms["budget"] for rollout in group.rollouts]
    assert values == [512.0] * 4 + [1024.0] * 4 + [2048.0] * 4 + [2560.0] * 4
    batch = collate([group], lambda rows: {})
    assert batch.lengths.tolist() == [len(text) for text in stated for _ in "4444"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_size": 6}, r"SplitGroup.group_size: 6. Allowed: a multiple of 4"),
        ({"max_length": 2048}, r"hbpo.budgets: .*2560\). Allowed: at most max_length, 2048"),
        ({"prefix": "short"}, r"hbpo.prefix: 'short'. Allowed: .*\{budget\}"),
        ({"budgets": ()}, r"SplitGroup.parts: \(\). Allowed: one or more"),
        ({"budgets": (8, 8)}, r"SplitGroup.parts: .* a value of its own"),
    ],
)
def test_budgets_that_do_not_fit_are_errors(arguments, message):
    assert hbpo(group_size=2, budgets=(8, 16)).sampler.group_size == 2
    with pytest.raises(ConfigError, match=message):
        hbpo(**arguments)
