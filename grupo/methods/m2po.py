"""M2PO: masks outliers until the second moment is small. Zheng et al., 2025, arXiv:2510.01161."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Loss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def m2po(group_size: PositiveInt = 8, max_second_moment: NonNegative = 0.04) -> Method:
    """loss = mean over all tokens of -M r A, M 0 for outliers in (log r)^2.

    A = (r - mean(r)) / std(r). No other clip.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        max_second_moment: bound on the mean of (log r)^2 of tokens that are kept (authors' code:
            0.04).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=SecondMomentMask(max_second_moment),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


@component
class SecondMomentMask(Loss):
    """-M r A; M masks tokens of large (log r)^2 until the mean of the others is at most the bound.

    Only tokens that have already moved with A are candidates: A > 0 and r > 1, or A < 0 and r < 1.

    Args:
        max_second_moment: bound on the mean of (log r)^2.
    """

    max_second_moment: NumberOrSchedule = 0.04

    # the moment is that of the minibatch
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d = ratios.token_log_ratio(pi, batch)
        A = batch.advantage
        moment = (d**2).detach()
        candidates = batch.mask & (d * A > 0)
        keep = ~candidates | (moment < self.drop_threshold(moment[candidates]))
        return -d.exp() * A * keep

    def drop_threshold(self, moments: Tensor) -> Tensor:
        """The smallest moment that is masked; equal moments are treated alike."""
        x = torch.cat([moments.sort().values, moments.new_tensor([torch.inf])])
        means = x.cumsum(0) / torch.arange(1, len(x) + 1).to(x)
        return x[(means <= self.max_second_moment).sum()]


PAPER = Paper(
    title="Prosperity before Collapse: How Far Can Off-Policy RL Reach with Stale Data on LLMs?",
    use="Rollouts are hundreds of updates old, and clips would discard most of their signal.",
    tags=("off-policy", "filtering", "importance-sampling"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "Infini-AI-Lab/M2PO: compute_m2po_policy_loss in verl/trainer/ppo/core_algos.py, "
        "train-scripts/m2po-qwen-math-7b-s256.sh",
    ),
    plan="m2po-qwen-math-7b-s256.sh: 256 prompts per step in minibatches of 64, 4 updates",
    missing=(
        (
            "Staleness: the script trains on rollouts of 64 steps (256 updates) before; set the"
            " trainer's max_staleness."
        ),
    ),
    deviations=(
        (
            "Outliers are masked until the mean of the others is at most the bound, as the paper"
            " describes. The code clips beyond the |log r| at which the mean of the capped squares"
            " meets the bound, so that its clipped tokens count in the mean."
        ),
        (
            "The moment and the mean over tokens are those of a minibatch, in the code of a"
            " micro-batch of at most 30,000 tokens."
        ),
    ),
    audit=(
        "candidates, bound and its mean over candidates compared with "
        "kpo_clip_harmful_tokens, constants and plan with the run script; the function's smallest "
        "clips of 0.3 and 0.5 are off there, since dp_actor.py passes None"
    ),
    shown=("docs/claims.md#reuse",),
)
