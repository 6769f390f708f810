"""SALT: steps that good and bad rollouts share are neutral. Li et al., 2025, arXiv:2510.20022."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import shift_left, shift_right
from grupo.algo.advantages.turn_table import (
    combine_labels,
    label_per_turn,
    turn_mask,
    turn_states,
    turns_to_tokens,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="SALT: Step-level Advantage Assignment for Long-horizon Agents via Trajectory Graph",
    use="Agents rewarded at the end only, whose rollouts begin alike and part later.",
    checked=("golden", "laws", "run"),
    catalogue=("salt",),
)
NO_LABEL = float("-inf")  # the label of what is not there: before the first turn, after the last


@component
class SharedStepMean:
    """The mean of x over the rollouts that took the same step after the same `history_turns` steps."""

    history_turns: int

    @property
    def required_signals(self) -> frozenset[str]:
        """The label of each turn's state and of its action."""
        return frozenset({"step/state", "step/action"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        there = turn_mask(batch)
        step, rollout = self._step_labels(batch)[there], there.nonzero()[:, 0]
        vote = 1 / group_ops.count(
            x[rollout], combine_labels(step, rollout)
        )  # one for each rollout
        mean = group_ops.sum(vote * x[rollout], step) / group_ops.sum(vote, step)
        return turns_to_tokens(x.new_zeros(there.shape).masked_scatter(there, mean), batch)

    def _step_labels(self, batch: Batch) -> Tensor:
        state = turn_states(batch)
        act = label_per_turn(batch.signals["step/action"], batch)
        after = shift_left(state, fill=NO_LABEL)
        edge = combine_labels(batch.group[:, None].expand_as(state), state, act, after).double()
        return combine_labels(
            *(shift_right(edge, k, NO_LABEL) for k in range(self.history_turns + 1))
        )


def salt(group_size: int = 8, history_turns: int = 3, clip_eps: float = 0.2) -> Method:
    """A_step = mean of the GRPO advantages of the rollouts that share the step.

    A step is an edge of the graph of a task's rollouts: from one state by one action to the next.
    """
    # The paper's equations were not seen: which edges are one is our reading, and so is `history_turns`.
    credit = chain(Center(), ScaleByStd(), SharedStepMean(history_turns))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=credit,
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
