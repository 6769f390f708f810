"""GPG: policy gradient, made up for groups without signal. Chu et al., 2025, arXiv:2504.02546."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
    use="Many groups are all right or all wrong, and steps should not shrink with their number.",
    verl="adv_estimator='gpg' (its alpha counts rewards that are not 0, not groups with signal)",
    checked=("golden", "laws", "reference", "run"),
)


@component
class ScaleByInformative:
    """x B / (B - M): of the batch's B rollouts, M are of groups whose rewards are all the same.

    Those M get 0.
    """

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: it counts the other groups."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        r = batch.reward
        signal = group_ops.max(r, batch.group) > group_ops.min(r, batch.group)
        scaled = x * len(r) / signal.sum().clamp(min=1)
        return torch.where(signal, scaled, torch.zeros_like(x))


def gpg(group_size: int = 8) -> Method:
    """A = alpha (r - mean(r)) with alpha = B / (B - M), M the rollouts of groups without signal.

    loss = -A log pi, mean over all tokens of the batch (eq. 5 and 7, with F_norm = 1).
    """
    # Group size is our choice. The paper also samples again while too few groups have signal
    # (beta_th = 0.6 of them): .but(curate=informative, curriculum=Refilled(Shuffled(), 10)).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByInformative()),
        loss=Reinforce(),
        aggregation=token_mean,
    )
