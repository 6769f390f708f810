"""GPG: policy gradient rescaled for uninformative groups. Chu et al., 2025, arXiv:2504.02546."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gpg(group_size: PositiveInt = 8) -> Method:
    """A = alpha (r - mean(r)), alpha = B / (B - M), M the rollouts in groups of equal rewards.

    loss = -A log pi, mean over all tokens of the batch (eq. 5 and 7, with F_norm = 1).

    Args:
        group_size: rollouts per task (authors' recipe of train.sh: 8).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByInformative()),
        loss=Reinforce(),
        aggregation=token_mean,
    )


@component
class ScaleByInformative:
    """x B / (B - M): M of the batch's B rollouts are in groups of equal rewards; those get 0."""

    # the other groups are counted
    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        r = batch.reward
        informative = group_ops.max(r, batch.group) > group_ops.min(r, batch.group)
        scaled = x * len(r) / informative.sum().clamp(min=1)
        return torch.where(informative, scaled, torch.zeros_like(x))


PAPER = Paper(
    title="GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
    use="Many groups have equal rewards, and steps should not shrink with their number.",
    tags=("advantage", "aggregation"),
    verl="adv_estimator='gpg' (its alpha counts rewards that are not 0, not groups with signal)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "AMAP-ML/GPG: open-r1/src/open_r1/gpg_trainer.py, open-r1/train.sh with its recipe "
        "config_simple_rl_math_l35_v1.yaml, and the README's table (F_norm = 1, "
        "alpha = B / (B - M))",
    ),
    plan=(
        "one update per step: gpg_trainer.py takes the gradient of log pi once on each generated "
        "batch, and train.sh accumulates those of 4 batches"
    ),
    missing=(
        (
            "Sampling again while fewer than beta_th = 0.6 of the groups are informative (0.5 "
            "in train.sh, at most 19 rounds): .replace(filter=keep_nonzero_std, "
            "curriculum=DynamicSampling(ShuffledTasks(), 10))."
        ),
    ),
    deviations=(
        (
            "alpha is unbounded: the release refills the batch first, which keeps it at most 2 "
            "(1.67 in the paper)."
        ),
        "alpha and the token mean are those of the whole step. The release has an alpha for each "
        "of the accumulated batches, and a token mean for each device.",
    ),
    audit=(
        "advantage, loss, token mean and alpha compared with gpg_trainer.py; alpha of "
        "verl's variant differs (see verl)"
    ),
    shown=("docs/claims.md#difficulty",),
)
