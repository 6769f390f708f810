"""Surrogates of turns, whose ratio is that of all actions the policy took in one of them."""

import torch
from torch import Tensor

from grupo.algo.advantages.turn_table import PerTurn, sum_per_turn, turns_to_tokens
from grupo.algo.losses.base import Loss
from grupo.algo.ratios import token_log_ratio
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class ReverseClip(Loss):
    """-min(r M A, clip(r, 1 - c, 1 + c) M A): r the turn's geometric mean, M the later ones'.

    M_t of turn t is clip(clip(r_(t+1)) M_(t+1)), a constant; 1 in the last turn. SeeUPO, Hu et al.,
    arXiv:2602.06554.

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], length=[2], turn=[[0, 1]], advantage=[1.0])
    >>> loss = ReverseClip(0.25)(moved(batch, [[0.0, log(1.5)]]), batch)  # M = 1.25, 1
    >>> loss.tolist()
    [[-1.25, -1.25]]
    """

    clip_eps: float

    @property
    def couples_rows(self) -> bool:
        """Yes: later turns may stand in another row of the rollout."""
        return True

    @property
    def has_stop_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        length = sum_per_turn(batch.mask.double(), batch).clamp(min=1)
        ratio = (sum_per_turn(token_log_ratio(pi, batch), batch) / length).exp()
        r = turns_to_tokens(ratio, batch).to(pi.logp)
        MA = batch.advantage * turns_to_tokens(self._later_ratios(ratio.detach()), batch).to(
            pi.logp
        )
        return -torch.min(r * MA, self._clip_ratio(r) * MA)

    def _later_ratios(self, ratio: PerTurn) -> PerTurn:
        M = torch.ones_like(ratio)
        for t in range(ratio.shape[1] - 1, 0, -1):
            M[:, t - 1] = self._clip_ratio(self._clip_ratio(ratio[:, t]) * M[:, t])
        return M

    def _clip_ratio(self, ratio: Tensor) -> Tensor:
        return ratio.clamp(1 - self.clip_eps, 1 + self.clip_eps)
