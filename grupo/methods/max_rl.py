"""MaxRL: advantages relative to the pass rate. Tajwar et al., 2026, arXiv:2602.02710."""

from math import inf

from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def max_rl(group_size: PositiveInt = 16, clip_eps: NonNegative = 0.2) -> Method:
    """A = (r - mean(r)) / mean(r): the sum over successes is divided by their number.

    With r 0 or 1 its expectation is the gradient of sum_(k < G) pass@k / k, the first terms of log
    p; more rollouts come closer to it.

    Args:
        group_size: rollouts per task (authors' script: 16).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # Loss and aggregation are those of verl, on which the authors' code runs.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=RelativeToMean(),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


@component
class RelativeToMean:
    """(x - m) / (m + eps), m the group's mean: 0 where nothing succeeded. For rewards >= 0.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> RelativeToMean(eps=0.0)(torch.tensor([1.0, 0.0, 0.0, 0.0]), make_batch(group=[0, 0, 0, 0]))
    tensor([ 3., -1., -1., -1.])
    """

    eps: NumberOrSchedule = 1e-6

    requires = Requires(reward_range=(0.0, inf))  # a negative mean would change the sign

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        m = group_ops.mean(x, batch.group)
        return (x - m) / (m + self.eps)


PAPER = Paper(
    title="Maximum Likelihood Reinforcement Learning",
    use="Hard tasks are solved rarely, and pass@k matters as much as pass@1.",
    tags=("advantage", "exploration"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "tajwarfahim/maxrl: compute_maxrl_outcome_advantage in "
        "verl/trainer/ppo/core_algos.py, qwen3_experiments/run_qwen3_training.sh",
    ),
    plan=(
        "one update per step: run_qwen3_training.sh has 256 prompts per step and "
        "minibatches of 256, one epoch"
    ),
    missing=(
        "The dual clip of 3 of verl's actor: with one update per step no clip acts, there or here.",
    ),
    deviations=(
        "The mean is over the tokens of the step, in the release of 4 rollouts at a time.",
    ),
    audit="advantage, eps, clips, group size and plan compared with the code and the run script",
    shown=("docs/claims.md#modes",),
)
