"""ARPO for GUI agents: a past success replaces a rollout. Lu et al., 2025, arXiv:2505.16282."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, pstdev

from grupo.algo.filters import mark_replayed
from grupo.algo.losses import Clip, RatioToCurrent
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.component import component
from grupo.core.kept_rollouts import NewestAbove
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Finite, NonNegativeFloat
from grupo.core.requires import Requires
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.util.rng import make_rng


def arpo_gui_replay(
    group_size: PositiveInt = 8,
    capacity: PositiveInt = 8,
    max_std: NonNegativeFloat = 0.05,
    max_mean: Finite = 0.2,
    success_threshold: Finite = 0.1,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.3,
    dual_clip: Positive = 3.0,
    reward_term: str = "env_reward",
) -> Method:
    """GRPO with a past success of the task in the place of the first rollout of failed groups.

    A = (r - mean(r)) / std(r), std by n - 1, over the group with the success. loss = mean over
    rollouts and their tokens of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A), at most
    -dual_clip A where A < 0. R is the ratio to the policy at the start of the step, also for the
    success: it begins at 1. There is no KL penalty.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (release: 8).
        capacity: successes that are kept per task; the oldest leave first (release: 8).
        max_std: standard deviation below which a group may have failed (release: 0.05).
        max_mean: mean below which a group may have failed (release: 0.2).
        success_threshold: a rollout is kept if `reward_term` is above this (release: 0.1).
        clip_low: width of the clip below 1 (release: 0.2).
        clip_high: width of the clip above 1 (release: 0.3).
        dual_clip: largest ratio that counts where A < 0 (release: 3).
        reward_term: the reward term of the task, without that of the format.
    """
    kept = NewestAbove(capacity, reward_term, success_threshold)
    return Method(
        sampler=GroupSampler(group_size),
        filter=ReplaceFirstIfFailed(kept, max_std, max_mean),
        loss=RatioToCurrent(Clip(clip_low, clip_high, CappedRatio(dual_clip))),
        updates=Updates(minibatches=2),
    )


@component
class ReplaceFirstIfFailed:
    """A past success of the task takes the place of the first rollout of a group that has failed.

    A group has failed if the reward term of `kept` has a standard deviation, divided by n, below
    `max_std` and a mean below `max_mean`. The success is drawn among those that are kept, with
    equal probabilities. Of the step's own rollouts the history may keep all, also the replaced one.

    Args:
        kept: the successes that the history keeps of each task.
        max_std: standard deviation from which on a group has not failed.
        max_mean: mean from which on a group has not failed.

    >>> from grupo.core.types import Response, Rollout, Task
    >>> won, lost = (Rollout((("?", Response((1,), (-0.5,))),), x, {"task": x}) for x in (1.0, 0.0))
    >>> group = Group(Task("k", "?", replays=(won,)), (lost, lost))
    >>> (replayed,) = ReplaceFirstIfFailed(NewestAbove(8, "task", 0.1))([group])
    >>> replayed.rewards, [rollout.source for rollout in replayed.rollouts]
    ((1.0, 0.0), ['replayed', 'policy'])
    """

    kept: NewestAbove
    max_std: NonNegativeFloat = 0.05
    max_mean: Finite = 0.2

    @property
    def requires(self) -> Requires:
        return Requires(replay_rules=(self.kept,), reward_terms=(self.kept.reward_term,))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [self._with_success(group) for group in groups]

    def _with_success(self, group: Group) -> Group:
        successes = [group.task.replays[i] for i in self.kept(group.task.replays)]
        if not successes or not self._has_failed(group):
            return group
        success = mark_replayed(group_rng(group).choice(successes))
        return replace(group, rollouts=(success, *group.rollouts[1:]))

    def _has_failed(self, group: Group) -> bool:
        name = self.kept.reward_term
        values = [rollout.reward_terms.get(name, 0.0) for rollout in group.rollouts]
        return pstdev(values) < self.max_std and fmean(values) < self.max_mean


def group_rng(group: Group) -> Random:
    """The random stream of a group, derived from its actions: the same on all ranks."""
    actions = [action for rollout in group.rollouts for _, action in rollout.turns]
    return make_rng(0, "replay", *((action.rng_key, action.items) for action in actions))


PAPER = Paper(
    title="ARPO:End-to-End Policy Optimization for GUI Agents with Experience Replay",
    use="Rewards are sparse, tasks recur, and whole groups fail at tasks that were solved before.",
    tags=("agents", "off-policy", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("arpo-gui-replay",),
    source=Source(
        "code",
        "dvlab-research/ARPO (commit 7489ae3): verl/trainer/replay_buffer.py, apply_replay of"
        " ray_trainer.py, core_algos.py, examples/osworld_full_arpo.sh",
    ),
    plan="osworld_full_arpo.sh: 16 tasks of 8 rollouts, minibatches of 8 tasks: 2 updates per step",
    missing=(
        "OSWorld, its screenshots and its checker; the reward of the release is that of the task"
        " + 0.5 format, format -1 where the last action could not be parsed, else 0.",
        "The choice of tasks: `grupo survey` and `Selected` keep those that are solved sometimes.",
    ),
    deviations=(
        "Rollouts that could not be scored are left out before the first is replaced.",
        "A minibatch has whole groups: the release reorders the rollouts of a step by their length,"
        " so that its devices have equal work, before it divides them.",
    ),
    audit=(
        "condition, draw, place, order of replay and storage, capacity, ratio, advantage, clip and"
        " batch sizes compared with the release, which differs from the catalogue's row in two"
        " points: it divides by the standard deviation of n - 1, so that one success among 8 has"
        " +2.4749 and the others -0.3536, where the row has +2.6458 and -0.3780; and it computes"
        " log-probabilities anew after the replay, where the row keeps the stored ones"
    ),
    shown=("docs/guidance_shown/arpo.md#a-known-success-in-failed-groups",),
)
