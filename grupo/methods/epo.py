"""EPO: every turn is weighed by the score a judge gave it. Liu et al., 2025, arXiv:2502.12486."""

from torch import Tensor

from grupo.algo.advantages.turn_table import rollout_turn_mean, turn_returns, turns_to_tokens
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via RL",
    use="Dialogues and negotiations whose decisive turns somebody can name afterwards.",
    checked=("golden", "laws", "run"),
    catalogue=("epo-strategic",),
)


@component
class TurnScores:
    """What each turn was paid, and `gamma` times what later turns were, for each of its actions."""

    gamma: float = 0.0

    @property
    def required_signals(self) -> frozenset[str]:
        """The scores of turns, paid at any of their actions."""
        return frozenset({"step/reward"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return turns_to_tokens(turn_returns(batch, self.gamma), batch)


def epo(group_size: int = 1, gamma: float = 0.0) -> Method:
    """loss = mean over rollouts of -1/T sum_t A_t / |a_t| sum_k log pi(a_tk): no ratio or baseline.

    A_t is the judge's score of turn t (step/reward); `gamma` > 0 adds what later turns were given.
    """
    # The loss of the released trainer (EPO/LLaMA-Factory of AlibabaResearch/DAMO-ConvAI). Its data
    # hold one score per turn, so that gamma is 0; the scale of the judge is the environment's.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=TurnScores(gamma),
        loss=Reinforce(),
        aggregation=rollout_turn_mean,
    )
