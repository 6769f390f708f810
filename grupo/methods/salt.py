"""SALT: steps shared by good and bad rollouts are neutral. Li et al., 2025, arXiv:2510.20022."""

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
from grupo.core.numbers import NonNegative, NonNegativeInt, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def salt(
    group_size: PositiveInt = 8, history_turns: PositiveInt = 3, clip_eps: NonNegative = 0.2
) -> Method:
    """A_step = mean of the GRPO advantages of the rollouts that share the step.

    A step is an edge of the graph of a task's rollouts: from one state by one action to the next.

    Args:
        group_size: rollouts per task.
        history_turns: earlier steps that must agree for a step to be shared (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    advantage = chain(Center(), ScaleByStd(), SharedStepMean(history_turns))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


NO_LABEL = float("-inf")  # label before the first turn and after the last


@component
class SharedStepMean:
    """The mean of x over rollouts with the same step after the same history_turns steps.

    Args:
        history_turns: earlier steps that must agree.
    """

    history_turns: NonNegativeInt

    # labels of each turn's state and action
    requires = Requires(signals=("step/state", "step/action"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        exists = turn_mask(batch)
        step = self._step_labels(batch)[exists]
        rollout = exists.nonzero()[:, 0]
        weight = 1 / group_ops.count(x[rollout], combine_labels(step, rollout))  # 1 per rollout
        mean = group_ops.sum(weight * x[rollout], step) / group_ops.sum(weight, step)
        return turns_to_tokens(x.new_zeros(exists.shape).masked_scatter(exists, mean), batch)

    def _step_labels(self, batch: Batch) -> Tensor:
        state = turn_states(batch)
        action = label_per_turn(batch.signals["step/action"], batch)
        next_state = shift_left(state, fill=NO_LABEL)
        edge = combine_labels(
            batch.group[:, None].expand_as(state), state, action, next_state
        ).double()
        return combine_labels(
            *(shift_right(edge, k, NO_LABEL) for k in range(self.history_turns + 1))
        )


PAPER = Paper(
    title="SALT: Step-level Advantage Assignment for Long-horizon Agents via Trajectory Graph",
    use="Agents with a final reward only, whose rollouts begin alike and diverge later.",
    tags=("agents", "process-reward"),
    checked=("golden", "properties", "run"),
    catalogue=("salt",),
    source=Source(
        "memory",
        (
            "the paper's idea; a public summary confirms that shared steps are neutral and "
            "distinct ones decisive"
        ),
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("RLOO in place of GRPO's advantages.",),
    deviations=(
        (
            "The paper's equations were not available: which edges are merged, and their history "
            "of 3 turns, are our reading."
        ),
        "The clip of 0.2, the mean over all tokens, group_size and the absence of a KL divergence"
        " are our choice.",
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; of the paper only "
        "the abstract and public summaries could be opened"
    ),
    shown=("docs/claims.md#turns",),
)
