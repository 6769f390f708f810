"""OTC-PO: correct answers with few tool calls earn more. Wang et al., 2025, arXiv:2504.14870."""

from math import inf, pi

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def otc_po(group_size: PositiveInt = 8, smoothing: Positive = 4.0) -> Method:
    """OTC-GRPO: r = outcome x efficiency, 1 at the fewest calls so far, less above and below.

    Reward terms: "tool_calls", the number of calls, and "correct". A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task.
        smoothing: c in the paper (the limit of tool calls; 4 for search).
    """
    # sin(pi m / (m + n)) is sin(f pi / (2 n)) with f = 2 n m / (m + n).
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(FewestCallsReward(smoothing), Center(), ScaleByStd()),
    )


REWARD_TERMS = ("tool_calls", "correct")


@component
class FewestCalls(TaskStatistic):
    """The fewest calls of a correct answer to a task; infinite where there is none."""

    @property
    def initial_state(self) -> StatisticState:
        return (inf,)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        calls, correct = (group.reward_terms.get(name, ()) for name in REWARD_TERMS)
        return (min(*state, *(m for m, o in zip(calls, correct, strict=True) if o > 0.5), inf),)


@component
class FewestCallsReward:
    """r = o sin(pi m / (m + n)) where n > 0, o cos(pi m / (2 m + smoothing)) where n = 0.

    Source: eq. 6 and 7.
    o is 1 for a correct answer ("correct" above 1/2), m the number of calls ("tool_calls"), n the
    fewest calls of a correct answer to the task so far in the run.

    Args:
        smoothing: c in the paper.
    """

    smoothing: Positive

    # `tool_calls` is a count: m + n of negative counts may be 0
    requires = Requires(
        reward_terms=REWARD_TERMS,
        task_statistics=(FewestCalls(),),
        bounded_rewards=("tool_calls",),
    )

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        m, o = (batch.reward_terms[name] for name in REWARD_TERMS)
        fewest = [history.state(FewestCalls())[0] for history in batch.history]
        earlier = torch.tensor(fewest).to(m)
        now = group_ops.min(m.masked_fill(o <= 0.5, inf), batch.group)
        n = torch.minimum(now, earlier[batch.group])
        n = torch.where(n.isinf(), m, n)  # without a correct answer r is 0 for any n
        with_calls = torch.sin(pi * m / (m + n))
        without_calls = torch.cos(pi * m / (2 * m + self.smoothing))
        return (o > 0.5) * torch.where(n > 0, with_calls, without_calls)


PAPER = Paper(
    title="OTC: Optimal Tool Calls via Reinforcement Learning",
    use="An agent calls tools for what it already knows.",
    tags=("agents", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("otc-po",),
    source=Source("paper", "version 2: eq. 6, 7 and 9, sections 3.3 and 4.1"),
    plan=(
        "not stated in the paper, which takes that of Search-R1 or ToRL; one update per step, in "
        "which the clip does not act"
    ),
    missing=(
        "The PPO form, cos(pi m / (2 m + c)) for all tasks.",
        "The KL divergence of eq. 9, whose coefficient is that of Search-R1 or ToRL.",
    ),
    deviations=(
        "group_size is our choice: the paper has that of Search-R1 or ToRL.",
        "The clip of 0.2 is our choice.",
    ),
    audit=(
        "the cases of the reward, n as the fewest calls so far in the run and c compared with the "
        "text of the paper"
    ),
)
