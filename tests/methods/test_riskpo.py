"""RiskPO: hand-computed papers, risks and thresholds."""

from dataclasses import replace
from math import inf, sqrt

import pytest
import torch

from grupo.algo.advantages.risk import bundle_scores
from grupo.core.schedules import resolve_schedules
from grupo.methods.riskpo import MixedRiskAdvantage, riskpo
from grupo.testing.batches import make_batch

LEVELS = (0.2, 0.9)


def tasks(rewards):
    """A row of rewards for each task; every rollout has log-probabilities of its own."""
    n = len(rewards[0])
    labels = [p for p in range(len(rewards)) for _ in range(n)]
    batch = make_batch(labels, [r for of_task in rewards for r in of_task])
    own = torch.arange(len(batch.reward), dtype=torch.float64)[:, None]
    return replace(batch, old_logp=-1 - own * 1e-8)  # in the order of the rollouts, backwards


def test_ith_rollouts_of_bundle_form_paper():
    batch = tasks([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    scores, bundle, paper = bundle_scores(batch.reward, batch, 2)
    # the last bits shuffle tasks 1 and 2 into the first bundle, task 0 into another of its own
    assert bundle.tolist() == [0, 0, 1, 1]
    assert paper.tolist() == [3, 2, 1, 0, 1, 0]
    assert scores.tolist() == [1.0, 1.0, 0.0, 2.0]  # task 0 alone counts twice


def test_every_rollout_is_in_one_paper():
    batch = tasks([[0.0] * 5] * 10)
    _, bundle, paper = bundle_scores(batch.reward, batch, 5)
    assert sorted(paper.tolist()) == sorted([*range(10)] * 5)
    assert bundle.tolist() == [0] * 5 + [1] * 5


def risk(S, before, weight=1.5):
    """The risk of bundles of one task each with scores S, before division by any std."""
    batch = tasks([[s] for s in S])
    return MixedRiskAdvantage(1, LEVELS, weight, *before)(batch.reward, batch).tolist()


def test_low_papers_are_penalized_and_high_ones_ignored():
    # thresholds that the batch does not move: mean(S < 1) = 0.2 and mean(S < 3) = 0.9
    S = [0.0, 0.0, *[2.0] * 7, 4.0]
    values = risk(S, (1.0, 3.0))
    low = (1.5 * (-1 / 0.2) + (1 - 3) / 0.7) / 2.5
    assert low == pytest.approx(-4.1429, abs=1e-4)
    assert values == pytest.approx([low, low, *[-1 / 0.7 / 2.5] * 7, 0.0])


def test_thresholds_track_quantile_levels():
    batch = tasks([[0.0], [0.0], [4.0], [4.0]])
    # mean(S < 1) = mean(S < 3) = 1/2
    report = MixedRiskAdvantage(1, LEVELS, 1.5, 1.0, 3.0).metrics(batch)
    assert report == pytest.approx(
        {"quantile/low": 1 + 0.1 * (0.2 - 0.5), "quantile/high": 3 + 0.1 * (0.9 - 0.5)}
    )


def test_initial_thresholds_are_batch_quantiles():
    batch = tasks([[float(i)] for i in range(11)])
    report = MixedRiskAdvantage(1, LEVELS, 1.5, -inf, -inf).metrics(batch)
    assert report == pytest.approx({"quantile/low": 2.0, "quantile/high": 9.0})


def test_risk_is_normalized_by_bundle_and_task_std():
    # one task of two rollouts: scores 0 and 1; q = Q = 1 moves to 1 + 0.1 (level - 1/2)
    batch = tasks([[0.0, 1.0]])
    q, Q = 1 - 0.03, 1 + 0.04
    std = sqrt(0.5)
    low = (1.5 * -q / 0.2 + (q - Q) / 0.7) / 2.5
    high = ((1 - q) + q - Q) / 0.7 / 2.5
    A = MixedRiskAdvantage(1, LEVELS, 1.5, 1.0, 1.0)(batch.reward, batch)
    assert A.tolist() == pytest.approx([low / std / std, high / std / std])


def test_next_step_starts_from_reported_thresholds():
    measured = {"quantile/low": [9.0, 1.0], "quantile/high": [9.0, 3.0]}
    then = resolve_schedules(riskpo(), 0.5, measured).advantage
    assert (then.quantile_low, then.quantile_high) == (1.0, 3.0)
    first = resolve_schedules(riskpo(), 0.5).advantage
    assert (first.quantile_low, first.quantile_high) == (-inf, -inf)


def test_defaults_match_reference_implementation():
    method = riskpo()
    assert method.sampler.group_size == method.advantage.bundle_size == 5
    assert (method.advantage.quantile_levels, method.advantage.cvar_weight) == (LEVELS, 1.5)
    assert method.loss.clip_low == method.loss.clip_high == 0.2
