"""ARRoL: its head, its score counts, and a training run with pruning."""

from math import log

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.calibration_counts import CountByBin
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import QualityLoss
from grupo.config.validate import check_recipe
from grupo.core.batch import Signals
from grupo.core.schedules import Switch, resolve_schedules
from grupo.methods.arrol import arrol
from grupo.rollouts.samplers import BetaBins, EarlyPruning
from grupo.rollouts.samplers.pruning import QUALITY_HEAD
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe, negate
from grupo.training.learner import Learner
from grupo.util.errors import ConfigError

SCORED = {"step/score_position": [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]}


def test_head_is_trained_on_the_outcomes_of_scored_rollouts():
    batch = make_batch([0, 0, 0], [1.0, 0.0, 1.0], length=[2, 2, 2], signals=SCORED)
    q = torch.tensor([[9.0, log(3.0)]] * 3, dtype=torch.float64, requires_grad=True)
    loss = QualityLoss()(Signals(quality=q), batch)
    # sigmoid(log 3) = 3/4: -log 3/4 where it was right, -log 1/4 where it was wrong
    expected = [[0.0, -log(3 / 4)], [0.0, -log(1 / 4)], [0.0, 0.0]]
    assert loss.tolist() == [pytest.approx(row) for row in expected]
    loss.sum().backward()
    assert q.grad is not None
    assert q.grad[:, 1].tolist() == pytest.approx([3 / 4 - 1, 3 / 4 - 0, 0.0])


def test_scores_are_counted_by_bin_and_advantages_unchanged():
    batch = make_batch(
        [0] * 4, [1.0, 0.0, 1.0, 1.0], reward_terms={"quality": [0.31, 0.39, 1.0, -1.0]}
    )
    metrics = CountByBin(10).metrics(batch)
    assert {name: x for name, x in metrics.items() if x} == {
        "value_bins/correct/3": 1.0,
        "value_bins/count/3": 2.0,
        "value_bins/correct/9": 1.0,
        "value_bins/count/9": 1.0,
    }
    assert len(metrics) == 20  # zero counts included
    assert CountByBin(10)(batch.reward, batch) is batch.reward


def test_continued_rollouts_have_grpo_advantages():
    batch = make_batch([0, 0], [1.0, 0.0], reward_terms={"quality": [0.5, -1.0]})
    A = batch.with_advantage(arrol().advantage).advantage[:, 0]
    assert A.tolist() == pytest.approx([0.5 / 0.5**0.5, -0.5 / 0.5**0.5], rel=1e-5)
    assert arrol().loss == Clip(0.2, 0.2) + QualityLoss()


def test_no_pruning_during_warmup():
    method = arrol()
    keep = Switch(0.1, 1.0, 0.5)
    assert method.sampler == EarlyPruning(16, keep, 512, 16384, 2, BetaBins.from_history(10, 0.9))
    assert method.requires.heads == (QUALITY_HEAD,)
    assert len(method.controller_metric_names) == 20
    early, late = (resolve_schedules(method, progress).sampler for progress in (0.05, 0.5))
    scores = [0.5] * 16
    assert len(early.kept_indices(scores)) == 16
    assert len(late.kept_indices(scores)) == 2 + 7


def test_asynchronous_rollouts_are_a_config_error():
    with pytest.raises(ConfigError, match=r"max_staleness: 1\. Allowed: 0 with EarlyPruning"):
        check_recipe(echo_recipe(arrol()).replace(max_staleness=1))


def training_metrics(turned: bool = False, steps: int = 40) -> list[dict[str, float]]:
    """The numbers of a run whose rollouts are given up after a token."""
    method = arrol(8, prune_at=1, always_keep=1)
    credit = chain(method.advantage, negate) if turned else method.advantage
    learner = Learner(
        echo_recipe(method, max_steps=steps).replace(method=method.replace(advantage=credit))
    )
    return [learner.step().metrics for _ in range(steps)]


@pytest.mark.slow
def test_training_with_pruning_raises_the_reward_and_with_flipped_sign_does_not():
    rises, falls = training_metrics(), training_metrics(turned=True)

    def ending(run: list[dict[str, float]]) -> float:
        return sum(numbers["reward/mean"] for numbers in run[-5:]) / 5

    assert ending(rises) > rises[0]["reward/mean"] + 0.2
    assert ending(falls) < falls[0]["reward/mean"] + 0.05
    assert "tokens/pruned" not in rises[0]
    pruned = [numbers for numbers in rises if "tokens/pruned" in numbers]
    assert len(pruned) > 20
    assert all(n["tokens/pruned"] == n["rollouts/pruned"] for n in pruned)  # a token each
    assert all(n["rollouts/failed"] == 0 for n in rises)
