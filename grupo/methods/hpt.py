"""HPT: each task switches between imitation and RL. Lv et al., 2025, arXiv:2509.04419."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import has_sampled_response
from grupo.algo.losses import NLL, Clip, PerSourceMean, SelectBySource, SeparateDemos
from grupo.algo.minibatches import Updates
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NonNegativeInt, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def hpt(
    group_size: PositiveInt = 8,
    max_correct_for_sft: NonNegativeInt = 0,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """SFT on a task's demonstration where at most max_correct_for_sft rollouts are correct, else
    RL.

    loss = mean over tokens of -log pi of the demonstrations that are kept
         + mean over tokens of PPO's clip of the sampled rollouts that are, A = r - mean(r).

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        max_correct_for_sft: correct rollouts up to which a task is imitated (authors' code: 0).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        filter=DemonstrationsWhereFailing(max_correct_for_sft + 1),
        advantage=SeparateDemos(Center()),
        loss=SelectBySource(Clip(clip_eps, clip_eps), NLL()),
        aggregation=PerSourceMean(token_mean),
        updates=Updates(minibatches=2),
    )


@component
class DemonstrationsWhereFailing:
    """Filter: demonstrations of groups with too few correct rollouts, sampled rollouts of the
    others.

    Groups without any rollout left are dropped.

    Args:
        min_correct: correct sampled rollouts from which the demonstrations are dropped.
        reward_term: name of the reward term that is read.
        success_threshold: a rollout is correct where its reward term is above this.
    """

    min_correct: PositiveInt = 1
    reward_term: str = "correct"
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        chosen = [replace(group, rollouts=self._select(group)) for group in groups]
        return [group for group in chosen if group.rollouts]

    def _select(self, group: Group) -> tuple[Rollout, ...]:
        sampled = tuple(r for r in group.rollouts if has_sampled_response(r))
        rewards = [r.reward_terms[self.reward_term] for r in sampled]
        num_correct = sum(reward > self.success_threshold for reward in rewards)
        if num_correct >= self.min_correct:
            return sampled
        return tuple(r for r in group.rollouts if not has_sampled_response(r))


PAPER = Paper(
    title="Towards a Unified View of Large Language Model Post-Training",
    use="Some tasks are beyond the policy and have a demonstration, others are within its reach.",
    tags=("sft", "off-policy"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "TsinghuaC3I/Unify-Post-Training: exp_scripts/train.sh and hpt/verl/verl/mix_src",
    ),
    plan="exp_scripts/train.sh: 128 prompts per step in minibatches of 64, 2 updates at most",
    missing=(
        "The entropy bonus of 0.001 in the script.",
        "A weight of the imitation loss other than 1: 0.3 for Qwen2.5-Math-1.5B in the script.",
        "The other gates (switch_gate_off, removal of imitated tasks).",
    ),
    deviations=(
        (
            "PPO's clip is kept: the script removes it (loss_remove_clip), which differs in the"
            " second update of a step."
        ),
        (
            "The means are over tokens: the script adds up the RL loss of a micro-batch and "
            "divides it by the width of the responses alone (loss_remove_token_mean), so that the "
            "weight of RL against imitation is another one."
        ),
        "A minibatch is half of the groups: the script's has 64 x 8 rows. An imitated task has one "
        "row, so that a step of many imitated tasks has one update there.",
    ),
    audit=(
        "gate, constants, aggregation and plan compared with train.sh and the fork's "
        "mix_fsdp_worker.py"
    ),
)
