"""EPO: every turn is weighed by the score a judge gave it. Liu et al., 2025, arXiv:2502.12486."""

from torch import Tensor

from grupo.algo.advantages.turn_table import returns, to_actions, turn_mean
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via RL",
    use="Dialogues and negotiations whose decisive turns somebody can name afterwards.",
    checked=("golden", "laws", "run"),
    catalogue=("epo-strategic",),
)


@piece
class TurnScores:
    """What each turn was paid, and `gamma` times what later turns were, for each of its actions."""

    gamma: float = 0.0

    @property
    def needs(self) -> frozenset[str]:
        """The scores of turns, paid at any of their actions."""
        return frozenset({"mark/reward"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return to_actions(returns(batch, self.gamma), batch)


def epo(group: int = 1, gamma: float = 0.0) -> Method:
    """loss = mean over rollouts of -1/T sum_t A_t / |a_t| sum_k log pi(a_tk): no ratio or baseline.

    A_t is the judge's score of turn t (mark/reward); `gamma` > 0 adds what later turns were given.
    """
    # The loss of the released trainer (EPO/LLaMA-Factory of AlibabaResearch/DAMO-ConvAI). Its data
    # hold one score per turn, so that gamma is 0; the scale of the judge is the environment's.
    return Method(
        sample=Independent(group),
        credit=TurnScores(gamma),
        loss=Reinforce(),
        weigh=turn_mean,
    )
