"""SALT: steps that good and bad rollouts share are neutral. Li et al., 2025, arXiv:2510.20022."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import earlier, later
from grupo.algo.advantages.turn_table import acted, alike, label_of_turns, states, to_actions
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="SALT: Step-level Advantage Assignment for Long-horizon Agents via Trajectory Graph",
    use="Agents rewarded at the end only, whose rollouts begin alike and part later.",
    checked=("golden", "laws", "run"),
    catalogue=("salt",),
)
NONE = float("-inf")  # the label of what is not there: before the first turn, after the last


@piece
class SharedSteps:
    """The mean of x over the rollouts that took the same step after the same `history` steps."""

    history: int

    @property
    def needs(self) -> frozenset[str]:
        """The label of each turn's state and of its action."""
        return frozenset({"mark/state", "mark/action"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        there = acted(batch)
        step, rollout = self._steps(batch)[there], there.nonzero()[:, 0]
        vote = 1 / group_ops.count(x[rollout], alike(step, rollout))  # one for each rollout
        mean = group_ops.sum(vote * x[rollout], step) / group_ops.sum(vote, step)
        return to_actions(x.new_zeros(there.shape).masked_scatter(there, mean), batch)

    def _steps(self, batch: Batch) -> Tensor:
        state = states(batch)
        act = label_of_turns(batch.seen["mark/action"], batch)
        after = later(state, beyond=NONE)
        edge = alike(batch.group[:, None].expand_as(state), state, act, after).double()
        return alike(*(earlier(edge, k, NONE) for k in range(self.history + 1)))


def salt(group: int = 8, history: int = 3, clip: float = 0.2) -> Method:
    """A_step = mean of the GRPO advantages of the rollouts that share the step.

    A step is an edge of the graph of a task's rollouts: from one state by one action to the next.
    """
    # The paper's equations were not seen: which edges are one is our reading, and so is `history`.
    credit = chain(Center(), ScaleByStd(), SharedSteps(history))
    return Method(sample=Independent(group), credit=credit, loss=Clip(clip, clip), weigh=token_mean)
