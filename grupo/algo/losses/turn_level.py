"""Clipped losses at the level of turns: the ratio spans all actions of one turn."""

import torch
from torch import Tensor

from grupo.algo.advantages.turn_table import PerTurn, sum_per_turn, turns_to_tokens
from grupo.algo.losses.base import Loss
from grupo.algo.ratios import token_log_ratio
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative
from grupo.core.requires import Requires


@component
class ReverseClip(Loss):
    """-min(r M A, clip(r) M A), (N, T), with clip(r) = clip(r, 1 - clip_eps, 1 + clip_eps).

    r is the geometric mean of the token ratios of the action's turn. M_t, a constant, carries the
    ratios of later turns: M_t = clip(clip(r_(t+1)) M_(t+1)), and 1 in the last turn.
    Source: SeeUPO, Hu et al., arXiv:2602.06554.

    Args:
        clip_eps: width of the clip on either side of 1.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2], turn=[[0, 1]], advantage=[1.0])
    >>> loss = ReverseClip(0.25)(perturb_logp(batch, [[0.0, log(1.5)]]), batch)  # M = 1.25, 1
    >>> loss.tolist()
    [[-1.25, -1.25]]
    """

    clip_eps: NonNegative

    # the later turns of a rollout may be in another row
    requires = Requires(coupled_rows=True, surrogate_gradient=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        length = sum_per_turn(batch.mask.double(), batch).clamp(min=1)
        ratio = (sum_per_turn(token_log_ratio(pi, batch), batch) / length).exp()
        r = turns_to_tokens(ratio, batch).to(pi.logp)
        M = turns_to_tokens(self._later_ratios(ratio.detach()), batch).to(pi.logp)
        MA = batch.advantage * M
        return -torch.min(r * MA, self._clip_ratio(r) * MA)

    def _later_ratios(self, ratio: PerTurn) -> PerTurn:
        """M of each turn."""
        M = torch.ones_like(ratio)
        for t in range(ratio.shape[1] - 1, 0, -1):
            M[:, t - 1] = self._clip_ratio(self._clip_ratio(ratio[:, t]) * M[:, t])
        return M

    def _clip_ratio(self, ratio: Tensor) -> Tensor:
        return ratio.clamp(1 - self.clip_eps, 1 + self.clip_eps)
