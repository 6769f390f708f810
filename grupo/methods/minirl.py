"""MiniRL: REINFORCE, corrected for the engine and masked. Zheng et al., 2025, arXiv:2512.01374."""

import torch

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import sequence_sum
from grupo.algo.losses import Reweighted
from grupo.algo.ratios import Against, Capped
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Stabilizing Reinforcement Learning with LLMs: Formulation and Practices",
    use="A plain baseline where engine and trainer disagree.",
    checked=("golden", "laws", "run"),
)


@piece
class Unclipped:
    """min(pi / sampler, cap), but 0 where PPO's clip of r = pi / old would stop the gradient."""

    low: float = 0.2
    high: float = 0.27
    cap: float = 5.0

    @property
    def needs(self) -> frozenset[str]:
        """The sampler's log-probabilities."""
        return frozenset({"logp@sampler"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r, A = ratios.token(pi, batch), batch.advantage
        stopped = ((A > 0) & (r > 1 + self.high)) | ((A < 0) & (r < 1 - self.low))
        return torch.where(stopped, 0.0, Capped(self.cap, Against("sampler"))(pi, batch))


def minirl(group: int = 16, low: float = 0.2, high: float = 0.27, cap: float = 5.0) -> Method:
    """loss = mean over answers of sum over tokens of -sg(M min(pi / sampler, `cap`)) A log pi.

    M is 0 where A > 0 and pi / old > 1 + `high` or A < 0 and pi / old < 1 - `low`. A = r - mean(r).
    """
    # Lengths are not divided by: a sum over tokens is what approximates the sequence's gradient to
    # first order. Form and constants as we know the paper; its routing replay is the engine's.
    return Method(
        sample=Independent(group),
        credit=Center(),
        loss=Reweighted(Unclipped(low, high, cap)),
        weigh=sequence_sum,
    )
