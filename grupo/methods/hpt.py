"""HPT: switch each task between imitation and reward. Lv et al., 2025, arXiv:2509.04419."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import own
from grupo.algo.losses import Apart, BySource, Clip, EachSource, Likelihood
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.types import Group, Rollout
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithExpert

PAPER = Paper(
    title="Towards a Unified View of Large Language Model Post-Training",
    use="Some tasks are beyond the policy and have a demonstration, others are within its reach.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class Switch:
    """Of each group its demonstrations, where fewer than `enough` own rollouts are right, or else
    its own rollouts. Groups of which nothing is left are dropped.
    """

    enough: int = 1
    part: str = "correct"
    right: float = 0.5

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        chosen = [replace(group, rollouts=self._chosen(group)) for group in groups]
        return [group for group in chosen if group.rollouts]

    def _chosen(self, group: Group) -> tuple[Rollout, ...]:
        mine = tuple(r for r in group.rollouts if own(r))
        able = sum(r.parts.get(self.part, 0.0) > self.right for r in mine) >= self.enough
        return mine if able else tuple(r for r in group.rollouts if not own(r))


def hpt(group: int = 8, gate: int = 0, clip: float = 0.2) -> Method:
    """SFT of a task's demonstration where at most `gate` of `group` are right, RL elsewhere.

    loss = mean over tokens of -log pi of the demonstrations that are learned from
         + mean over tokens of PPO's clip of the own rollouts that are, A = r - mean(r).
    """
    # As released (TsinghuaC3I/Unify-Post-Training): a gate of 0 for Qwen, a coefficient of 1 on
    # SFT, no standard deviation. It drops the clip, the same on policy, and divides RL by a
    # constant length; a mean over tokens is our choice. Its entropy bonus of 0.001 is left out.
    return Method(
        sample=WithExpert(Independent(group)),
        curate=Switch(gate + 1),
        credit=Apart(Center()),
        loss=BySource(Clip(clip, clip), Likelihood()),
        weigh=EachSource(token_mean),
    )
