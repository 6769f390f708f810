"""RFT: supervised learning of the own correct answers. Zelikman et al., 2022, arXiv:2203.14465."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import unit_advantage
from grupo.algo.losses import NLL
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rft(group_size: PositiveInt = 8) -> Method:
    """loss = mean over the tokens of correct rollouts of -log pi: rejection-sampling fine-tuning.

    It is the policy gradient of a reward of 1 or 0 without a baseline, divided by the fraction that
    is correct.

    Args:
        group_size: rollouts per task (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepCorrect(),
        advantage=unit_advantage,
        loss=NLL(),
        aggregation=token_mean,
    )


@component
class KeepCorrect:
    """Keeps rollouts with reward_term above success_threshold; groups without one are dropped.

    Args:
        reward_term: name of the reward term that is read.
        success_threshold: a rollout is correct where its reward term is above this.
    """

    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        filtered = [replace(group, rollouts=self._correct(group)) for group in groups]
        return [group for group in filtered if group.rollouts]

    def _correct(self, group: Group) -> tuple:
        return tuple(
            r for r in group.rollouts if r.reward_terms[self.reward_term] > self.success_threshold
        )


PAPER = Paper(
    title="STaR: Bootstrapping Reasoning With Reasoning",
    use="The simplest baseline: it never lowers a probability on purpose.",
    tags=("sft", "filtering"),
    checked=("golden", "properties", "run"),
    source=Source("memory", "the paper's algorithm"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "Rationalization: rationales of given answers are learned, too.",
        "Training from the base model in every round.",
    ),
    deviations=(
        (
            "A step continues from the current policy and makes one update; the paper trains each "
            "round on all its correct rationales."
        ),
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; no document could "
        "be opened"
    ),
)
