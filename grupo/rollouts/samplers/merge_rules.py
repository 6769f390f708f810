"""Rules that merge further rollouts, called answers here, into a group."""

from collections.abc import Sequence
from typing import Protocol

from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.types import Group, Rollout


class MergeRollouts(Protocol):
    """Merges the answers of a rescue attempt into a group, and returns the new group.

    `answers` is never empty. An answer that could not be scored has an `error`.
    """

    def __call__(self, group: Group, answers: Sequence[Rollout], /) -> Group: ...


def add_all(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with all answers after its rollouts."""
    return group.with_rollouts((*group.rollouts, *answers))


def replace_all(group: Group, answers: Sequence[Rollout]) -> Group:
    """The answers in place of the group's rollouts."""
    return group.with_rollouts(answers)


def replace_last(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with its last rollouts replaced by the answers.

    Rollouts of one task are exchangeable, so the last ones are as good as randomly chosen ones.
    """
    kept = max(0, len(group.rollouts) - len(answers))
    return group.with_rollouts((*group.rollouts[:kept], *answers))


def best_replaces_first(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with its first rollout replaced by the answer with the highest reward.

    >>> from grupo.core.types import Task
    >>> old, new = (Rollout(reward=1.0), Rollout(reward=0.0)), [Rollout(reward=0.5)]
    >>> best_replaces_first(Group(Task("k", "?"), old), new).rewards
    (0.5, 0.0)
    """
    return _replace_first(group, ranked_answers(answers)[:1])


def best_replaces_worst(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with its worst scored rollout replaced by the best answer, if that is better.

    >>> from grupo.core.types import Task
    >>> old, new = (Rollout(reward=0.5), Rollout(reward=0.0)), [Rollout(reward=0.4)]
    >>> best_replaces_worst(Group(Task("k", "?"), old), new).rewards
    (0.5, 0.4)
    """
    ranked = ranked_answers(answers)
    rollouts = group.rollouts
    scored = [i for i, rollout in enumerate(rollouts) if not rollout.error]
    worst = min(scored, key=lambda i: rollouts[i].reward, default=-1)
    if not ranked or not scored or ranked[0].reward <= rollouts[worst].reward:
        return group
    return group.with_rollouts((*rollouts[:worst], ranked[0], *rollouts[worst + 1 :]))


@component
class FirstCorrectReplacesFirst:
    """The group with its first rollout replaced by the first correct answer, if there is one.

    Args:
        success_threshold: An answer with a higher reward is correct.
    """

    success_threshold: NumberOrSchedule = 0.5

    def __call__(self, group: Group, answers: Sequence[Rollout]) -> Group:
        correct = [answer for answer in answers if answer.reward > self.success_threshold]
        return _replace_first(group, correct[:1])


def ranked_answers(answers: Sequence[Rollout]) -> list[Rollout]:
    """The scored answers, the highest reward first. Answers with equal rewards keep their order."""
    return sorted((a for a in answers if not a.error), key=lambda answer: -answer.reward)


def _replace_first(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with as many of its first rollouts replaced as there are answers."""
    return group.with_rollouts((*answers, *group.rollouts[len(answers) :]))
