"""MT-GRPO: turns before the last earn their own reward. Zeng et al., 2025, arXiv:2505.11821."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import discounted, later, total
from grupo.algo.advantages.turn_table import acted, to_actions
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
    use="Agents that use tools before they answer, where a good call can be told from a bad one.",
    checked=("golden", "laws", "reference", "run"),
)
ZSCORE = chain(Center(), ScaleByStd(eps=1e-4))


@piece
class TurnsBeforeTheLast:
    """z(outcome) + coef z(what turns were paid) before the last turn, z(outcome) in it.

    A rollout of one turn, which used no tool, is credited with z(outcome + paid).
    """

    coef: float

    @property
    def needs(self) -> frozenset[str]:
        """What turns were paid, the outcome not among it."""
        return frozenset({"mark/reward"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        paid = total(batch.seen["mark/reward"], batch).to(x)
        outcome, turns, both = ZSCORE(x, batch), ZSCORE(paid, batch), ZSCORE(x + paid, batch)
        before = later(discounted(acted(batch).double(), 1.0)) > 0
        several = before.any(1)
        A = torch.where(several, outcome, both)[:, None] + self.coef * turns[:, None] * before
        return to_actions(A, batch)


def mt_grpo(group: int = 8, coef: float = 1.0, clip: float = 0.2, kl: float = 0.04) -> Method:
    """A = A_outcome + `coef` A_turn in turns before the last, A_outcome in the last.

    Both are GRPO's z-scores: of the reward, and of the sum of what the turns were paid
    (mark/reward, without the outcome).
    """
    # Two turns, a call and an answer, are the paper's case (v1) and the authors' code
    # (SiliangZeng/Multi-Turn-RL-Agent); more turns share one A_turn. eps = 1e-4, as there; `group`
    # and `kl` are our choice.
    return Method(
        sample=Independent(group),
        credit=TurnsBeforeTheLast(coef),
        loss=Clip(clip, clip) + kl * KL(),
    )
