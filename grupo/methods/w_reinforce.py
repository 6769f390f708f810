"""W-REINFORCE: a failure counts ten times a success. Zhu et al., 2025, arXiv:2506.01347."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    use="Pass@1 should rise without loss of pass@k at great k.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class SignAdvantage:
    """`positive` for a rollout whose reward is above 0, -1 for any other: no baseline.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> SignAdvantage(0.5)(torch.tensor([1.0, 0.0]), make_batch(group=[0, 0]))
    tensor([ 0.5000, -1.0000])
    """

    positive_advantage: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.where(
            x > 0, torch.full_like(x, self.positive_advantage), torch.full_like(x, -1.0)
        )


def w_reinforce(
    group_size: int = 8, positive_advantage: float = 0.1, clip_eps: float = 0.2
) -> Method:
    """A = `positive` (lambda in the paper) for a right answer, -1 for a wrong one.

    loss = mean over tokens of -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A): plain REINFORCE is
    `positive` = 1, negative reinforcement alone `nsr`.
    """
    # lambda = 0.1 is the paper's; the clipped token mean is what the authors' code trains with.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SignAdvantage(positive_advantage),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
