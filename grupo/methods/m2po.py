"""M2PO: mask outliers until the second moment is small. Zheng et al., 2025, arXiv:2510.01161."""

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Prosperity before Collapse: How Far Can Off-Policy RL Reach with Stale Data on LLMs?",
    use="Rollouts are hundreds of updates old, and clips would waste most of what they teach.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class SecondMomentMask(Loss):
    """-M r A: M drops the tokens of greatest (log r)^2 until the others' mean is at most `max_second_moment`.

    Only tokens that A has moved already are looked at: A > 0 and r > 1, A < 0 and r < 1.
    """

    max_second_moment: float = 0.04

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the moment is that of the minibatch."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        d, A = ratios.token_log_ratio(pi, batch), batch.advantage
        moment, looked_at = (d**2).detach(), batch.mask & (d * A > 0)
        keep = ~looked_at | (moment < self.drop_threshold(moment[looked_at]))
        return -d.exp() * A * keep

    def drop_threshold(self, moments: Tensor) -> Tensor:
        """The least moment that is dropped; equal ones fall together."""
        x = torch.cat([moments.sort().values, moments.new_tensor([torch.inf])])
        means = x.cumsum(0) / torch.arange(1, len(x) + 1).to(x)
        return x[(means <= self.max_second_moment).sum()]


def m2po(group_size: int = 8, max_second_moment: float = 0.04) -> Method:
    """loss = mean over all tokens of -M r A, M 0 for outliers in (log r)^2, `max_second_moment` what is left.

    A = (r - mean(r)) / std(r). No other clip.
    """
    # 0.04 is that of the released scripts. The authors' code (Infini-AI-Lab/M2PO) looks at the same
    # tokens, caps |log r| instead of masking, and never clips within 0.7 and 1.5.
    return Method(
        sampler=GroupSampler(group_size),
        loss=SecondMomentMask(max_second_moment),
        aggregation=token_mean,
    )
