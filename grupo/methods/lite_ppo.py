"""Lite PPO: group mean, batch deviation, token mean. Liu et al., 2025, arXiv:2508.08221."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, chain
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


def lite_ppo(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """A = (r - mean(r)) / std(r), the mean of the group, the deviation of the batch's rewards.

    loss = mean over all tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A), without KL.

    Args:
        group_size: rollouts per task (TRL's index of papers: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (ROLL's page: 0.2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByBatchStd()),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


@component
class ScaleByBatchStd:
    """x / (s + eps), s the unbiased standard deviation of all rewards of the batch.

    Args:
        eps: added to the denominator (ROLL: 1e-6).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], reward=[1.0, 3.0, 2.0])  # deviation 1
    >>> ScaleByBatchStd(eps=0.0)(torch.tensor([-1.0, 1.0, 0.0]), batch)
    tensor([-1.,  1.,  0.])
    """

    eps: NumberOrSchedule = 1e-6

    # the deviation is that of the batch
    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        whole_batch = torch.zeros_like(batch.group)
        return x / (group_ops.std(batch.reward, whole_batch) + self.eps).to(x)


PAPER = Paper(
    title="Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
    use="A base model, rewards of one scale, and few tricks.",
    tags=("advantage", "aggregation"),
    trl="scale_rewards='batch', loss_type='dapo'",
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "TRL's index of papers, with the paper's table of parameters; the deviation of the batch "
        "and its 1e-6 from reward_norm of alibaba/ROLL, the authors' framework "
        "(roll/utils/functionals.py:564-597, norm_mean_type=group, norm_std_type=batch)",
    ),
    plan=(
        "not settled: TRL's index derives 8 minibatches per rollout batch for one device, "
        "the number of devices is not stated, and ppo_epochs is 1; one update per step, in which "
        "the clip does not act"
    ),
    missing=(
        "The dual clip, the clip of advantages at 2.0, the whitening of advantages and the KL loss "
        "of 0.001 of ROLL's page LitePPO.md; the paper's table has a KL weight of 0.",
        "The estimator gae, one rollout per task and the loss_agg_mode seq-mean-token-mean of that "
        "page. Its text and TRL's index have a mean over tokens, and TRL's index has no critic.",
        "The temperature of 0.99, top-p of 0.99 and top-k of 100 of TRL's index.",
    ),
    audit=(
        "deviation of the batch and its 1e-6 compared with ROLL's reward_norm; token mean, no KL "
        "and group size with TRL's index of papers"
    ),
    shown=("docs/claims.md#noisy",),
)
