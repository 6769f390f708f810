"""TIC-GRPO: one ratio for the whole rollout, the product. Pang et al., 2025, arXiv:2508.02833."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Loss
from grupo.algo.token_level import SEQUENCES
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def tic_grpo(group_size: PositiveInt = 8, clip_high: NonNegative = 0.2) -> Method:
    """loss = mean over rollouts of -min(w, 1 + clip_high) A, w = prod_t r_t.

    w = pi(rollout) / old(rollout) estimates the gradient at the current policy, token ratios that
    at the old one. A = (x - mean(x)) / std(x) with x = r / length, the length-corrected reward.

    Args:
        group_size: rollouts per task (our choice).
        clip_high: w is at most 1 + clip_high (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(per_token, Center(), ScaleByStd()),
        loss=UpperClip(clip_high),
    )


def per_token(x: Tensor, batch: Batch) -> Tensor:
    """r / L, (R,): the reward of each rollout divided by its number of actions."""
    return x / batch.lengths.clamp(min=1)


@component
class UpperClip(Loss):
    """-min(w, 1 + clip_high) A, (N, T), w the product of the sequence's ratios.

    The bound holds for both signs of A, and there is no lower bound.

    Args:
        clip_high: w is at most 1 + clip_high.
    """

    clip_high: NonNegative = 0.2

    requires = SEQUENCES

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -ratios.product(pi, batch).clamp(max=1 + self.clip_high) * batch.advantage

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        clipped = ratios.product(pi, batch) > 1 + self.clip_high
        return {"clip_frac/high": torch.broadcast_to(clipped, batch.mask.shape).to(batch.advantage)}


PAPER = Paper(
    title="TIC-GRPO: Provable and Efficient Optimization for Reinforcement Learning from Human "
    "Feedback",
    use="Short rollouts and several updates a step, with the current policy's gradient.",
    tags=("importance-sampling", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "reviews of the paper and an implementation by other people (Wodlfvllf/grpo-composer)",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        "clip_high is that of PPO; the other implementation takes DAPO's 0.28.",
        "With the one update of a step w is 1, so that the bound does not act; more updates need"
        " .replace(updates=Updates(minibatches=4)).",
        "There is no KL divergence; the other implementation has one of weight 0.01. Rows count "
        "equally in both.",
        (
            "Where A < 0 and w is above the bound, the loss is constant and has no gradient; the "
            "other implementation takes the maximum of it and the loss of the token's own ratio."
        ),
    ),
    audit="ratio, upper clip and length correction compared with an implementation by other "
    "people and with reviews; the paper's formulas could not be opened",
)
