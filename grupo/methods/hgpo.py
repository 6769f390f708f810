"""HGPO: steps are compared by state and by ever longer past. He et al., 2026, arXiv:2602.22817."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import earlier
from grupo.algo.advantages.turn_table import acted, alike, centred, returns, states, to_actions
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
    use="Agents whose prompt holds some past turns: one state can be many situations.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("hgpo",),
)
NOTHING = 1e-9  # an advantage this small is 0 but for rounding


@piece
class Histories:
    """Mean over k = 1..K+1, weighted by (k + 1)^alpha, of R_t - mean of R where k states agree."""

    history: int
    gamma: float
    alpha: float

    @property
    def needs(self) -> frozenset[str]:
        """What each step was paid, and the state it was taken in."""
        return frozenset({"mark/reward", "mark/state"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        R, state, there = returns(batch, self.gamma), states(batch), acted(batch)
        past, A, total = batch.group[:, None].expand_as(R), torch.zeros_like(R), torch.zeros_like(R)
        for k in range(1, self.history + 2):
            past = alike(past, earlier(state, k - 1))
            there = there & (earlier(acted(batch).double(), k - 1) > 0)
            level = centred(R, past, there)
            w = (k + 1) ** self.alpha * (level.abs() > NOTHING)
            A, total = A + w * level, total + w
        return to_actions(A / total.clamp(min=NOTHING), batch)


def hgpo(
    group: int = 8, history: int = 2, gamma: float = 0.95, alpha: float = 1.0, kl: float = 0.01
) -> Method:
    """A = sum_k w_k A_k, A_k against steps whose last k states are the same, w_k as (k + 1)^alpha.

    `history` past turns stand in the prompt. Levels that say nothing, A_k = 0, carry no weight.
    """
    # The mode without a standard deviation (mean_norm) of recipe/hgpo of langfengQ/verl-agent; the
    # outcome is paid at an action like every reward: there is no term of the whole rollout.
    credit, loss = Histories(history, gamma, alpha), Clip(0.2, 0.2) + kl * KL()
    return Method(sample=Independent(group), credit=credit, loss=loss, weigh=token_mean)
