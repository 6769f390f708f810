"""HPT: switch each task between imitation and reward. Lv et al., 2025, arXiv:2509.04419."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import has_sampled_action
from grupo.algo.losses import NLL, Clip, PerSourceMean, SelectBySource, SeparateDemos
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.types import Group, Rollout
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="Towards a Unified View of Large Language Model Post-Training",
    use="Some tasks are beyond the policy and have a demonstration, others are within its reach.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class DemonstrationsWhereFailing:
    """Of each group its demonstrations, where fewer than `min_correct` own rollouts are right, or else
    its own rollouts. Groups of which nothing is left are dropped.
    """

    min_correct: int = 1
    reward_term: str = "correct"
    success_threshold: float = 0.5

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        chosen = [replace(group, rollouts=self._select(group)) for group in groups]
        return [group for group in chosen if group.rollouts]

    def _select(self, group: Group) -> tuple[Rollout, ...]:
        mine = tuple(r for r in group.rollouts if has_sampled_action(r))
        able = (
            sum(r.reward_terms.get(self.reward_term, 0.0) > self.success_threshold for r in mine)
            >= self.min_correct
        )
        return mine if able else tuple(r for r in group.rollouts if not has_sampled_action(r))


def hpt(group_size: int = 8, max_correct_for_sft: int = 0, clip_eps: float = 0.2) -> Method:
    """SFT of a task's demonstration where at most `max_correct_for_sft` of `group_size` are right, RL elsewhere.

    loss = mean over tokens of -log pi of the demonstrations that are learned from
         + mean over tokens of PPO's clip of the own rollouts that are, A = r - mean(r).
    """
    # As released (TsinghuaC3I/Unify-Post-Training): a gate of 0 for Qwen, a coefficient of 1 on
    # SFT, no standard deviation. It drops the clip, the same on policy, and divides RL by a
    # constant length; a mean over tokens is our choice. Its entropy bonus of 0.001 is left out.
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        filter=DemonstrationsWhereFailing(max_correct_for_sft + 1),
        advantage=SeparateDemos(Center()),
        loss=SelectBySource(Clip(clip_eps, clip_eps), NLL()),
        aggregation=PerSourceMean(token_mean),
    )
