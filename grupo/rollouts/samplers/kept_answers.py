"""How the scored answers of a further attempt are merged into a group."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.types import Group, Rollout


class MergeRollouts(Protocol):
    """Merges the scored rollouts of an attempt, of which there is at least one, into a group."""

    def __call__(self, group: Group, answers: Sequence[Rollout], /) -> Group: ...


def add_all(group: Group, answers: Sequence[Rollout]) -> Group:
    """The group with all answers behind its rollouts."""
    return replace(group, rollouts=(*group.rollouts, *answers))


def replace_all(group: Group, answers: Sequence[Rollout]) -> Group:
    """The answers in place of the group's rollouts."""
    return replace(group, rollouts=tuple(answers))


def replace_last(group: Group, answers: Sequence[Rollout]) -> Group:
    """The answers in place of as many of the group's last rollouts.

    Rollouts of one task are exchangeable: the last wrong ones are as good as random wrong ones.
    """
    kept = max(0, len(group.rollouts) - len(answers))
    return replace(group, rollouts=(*group.rollouts[:kept], *answers))


def best_replaces_first(group: Group, answers: Sequence[Rollout]) -> Group:
    """The best answer, the first of equals, in place of the group's first rollout.

    >>> from grupo.core.types import Task
    >>> old, new = (Rollout(reward=1.0), Rollout(reward=0.0)), [Rollout(reward=0.5)]
    >>> best_replaces_first(Group(Task("k", "?"), old), new).rewards
    (0.5, 0.0)
    """
    return _replace_first(group, best_answers(answers)[:1])


def best_replaces_worst(group: Group, answers: Sequence[Rollout]) -> Group:
    """The best answer in place of the group's worst scored rollout, where it has a higher reward.

    >>> from grupo.core.types import Task
    >>> old, new = (Rollout(reward=0.5), Rollout(reward=0.0)), [Rollout(reward=0.4)]
    >>> best_replaces_worst(Group(Task("k", "?"), old), new).rewards
    (0.5, 0.4)
    """
    best = best_answers(answers)[:1]
    scored = [i for i, rollout in enumerate(group.rollouts) if not rollout.error]
    worst = min(scored, key=lambda i: group.rollouts[i].reward, default=-1)
    if not best or not scored or best[0].reward <= group.rollouts[worst].reward:
        return group
    kept = group.rollouts
    return replace(group, rollouts=(*kept[:worst], best[0], *kept[worst + 1 :]))


@component
class FirstCorrectReplacesFirst:
    """The first correct answer in place of the group's first rollout; the group if there is none.

    Args:
        success_threshold: An answer with a higher reward is correct.
    """

    success_threshold: NumberOrSchedule = 0.5

    def __call__(self, group: Group, answers: Sequence[Rollout]) -> Group:
        correct = [answer for answer in answers if answer.reward > self.success_threshold]
        return _replace_first(group, correct[:1])


def best_answers(answers: Sequence[Rollout]) -> list[Rollout]:
    """The answers without an error, best first, equal ones in order."""
    return sorted((a for a in answers if not a.error), key=lambda answer: -answer.reward)


def _replace_first(group: Group, answers: Sequence[Rollout]) -> Group:
    return replace(group, rollouts=(*answers, *group.rollouts[len(answers) :]))
