"""The groups that a step has collected: those generated so far, and those that it trains on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import torch
from torch import Tensor

from grupo.algo.filters import Filter, select_groups_of_step
from grupo.core.types import Group
from grupo.training.collect.failed_rollouts import drop_failed_rollouts
from grupo.training.collect.unfinished_groups import GroupInProgress


@dataclass(frozen=True)
class CollectedGroups:
    """The groups that a step generated, and the groups that it trains on.

    A group is sampled if its generation has ended in the step. A sampled group is kept if the
    filter selects it. The filter and the replay of stored rollouts may remove rollouts from a kept
    group, and the filter may add some.

    Args:
        sampled_groups: All groups whose generation has ended. Some of their rollouts may be
            unfinished: the sampler stopped them on purpose.
        kept_groups: The groups that the step trains on: those that the filter returns, and after a
            replay also one group for each replayed rollout.
        rank_of_rollout: The rank that generated each rollout, by `Rollout.index`; () if it is not
            known.
        unfinished_groups: The groups that the next step continues, in order.
    """

    sampled_groups: tuple[Group, ...]
    kept_groups: tuple[Group, ...]
    rank_of_rollout: tuple[int, ...] = ()
    unfinished_groups: tuple[GroupInProgress, ...] = ()

    def rank_of_rows(self, rollout_of_row: Tensor) -> Tensor:
        """Return the rank that generated each row of the batch of the kept groups, (N,).

        The rank of a row is 0 if it is not known.

        Args:
            rollout_of_row: For each row, the position of its rollout among the rollouts of
                `kept_groups`, (N,). This is not `Rollout.index`.
        """
        rank_by_index = dict(enumerate(self.rank_of_rollout))
        kept_rollouts = (rollout for group in self.kept_groups for rollout in group.rollouts)
        rank_of_kept = [rank_by_index.get(rollout.index, 0) for rollout in kept_rollouts]
        return torch.tensor(rank_of_kept, dtype=torch.long)[rollout_of_row]


@dataclass
class GroupsSoFar:
    """The groups of all sampling rounds of a step so far.

    In a later round, a curriculum may draw a task again and set `Task.extends_group`. The new group
    is an extension: its rollouts are added to the task's group of the earlier round.

    Args:
        sampled: The groups whose generation has ended.
        without_failed_rollouts: The sampled groups without their failed rollouts. Groups of which
            nothing remains are dropped.
        kept: The groups of `without_failed_rollouts` that the filter selected.
        rank_of_rollout: The rank that generated each rollout, by `Rollout.index`.
        unfinished: The groups that the next step continues.
    """

    sampled: list[Group] = field(default_factory=list)
    without_failed_rollouts: list[Group] = field(default_factory=list)
    kept: list[Group] = field(default_factory=list)
    rank_of_rollout: list[int] = field(default_factory=list)
    unfinished: list[GroupInProgress] = field(default_factory=list)

    def num_missing(self, num_groups: int) -> int:
        """Return how many groups a next round must generate, if the step needs `num_groups` groups.

        Kept and unfinished groups count, and among them those that earlier steps began.
        """
        return max(0, num_groups - len(self.kept) - len(self.unfinished))

    def add(
        self,
        ended: Mapping[int, Group],
        unfinished: Mapping[int, GroupInProgress],
        num_ranks: int,
        group_filter: Filter,
    ) -> None:
        """Add the groups of a sampling round.

        Args:
            ended: The groups whose generation has ended, by index in the round.
            unfinished: The other groups, by index in the round.
            num_ranks: Number of ranks; `share_of_rank` gave group i to rank i % num_ranks.
            group_filter: Selects the groups to train on.
        """
        sampled = index_rollouts([*ended.values()], len(self.rank_of_rollout))
        for i, group in zip(ended, sampled, strict=True):
            self.rank_of_rollout += [i % num_ranks] * len(group.rollouts)
        without_failed_rollouts = [
            remaining for group in sampled if (remaining := drop_failed_rollouts(group)).rollouts
        ]
        new_groups = _new_groups(without_failed_rollouts)
        self.sampled = [*extend_groups(self.sampled, sampled), *_new_groups(sampled)]
        self.without_failed_rollouts = [
            *extend_groups(self.without_failed_rollouts, without_failed_rollouts),
            *new_groups,
        ]
        # Extensions are not filtered: the filter has decided about the groups that they extend.
        self.kept = [
            *extend_groups(self.kept, without_failed_rollouts),
            *group_filter(new_groups),
        ]
        # An extension may be unfinished. This step then trains on the earlier group alone, and the
        # next step continues the extension as a group of its own.
        self.unfinished += [
            replace(group, task=replace(group.task, extends_group=False))
            for group in unfinished.values()
        ]

    def select_for_step(self, group_filter: Filter, *, max_kept: int) -> CollectedGroups:
        """Return the groups of the step, after its last round.

        The step trains on at most `max_kept` groups. `add` has filtered the groups of each round. A
        `StepFilter` also selects once among all groups of the step, and may add groups.
        """
        kept = select_groups_of_step(
            group_filter, self.kept, self.without_failed_rollouts, max_kept
        )
        return CollectedGroups(
            tuple(self.sampled), tuple(kept), tuple(self.rank_of_rollout), tuple(self.unfinished)
        )


def extend_groups(groups: Sequence[Group], groups_of_round: Sequence[Group]) -> list[Group]:
    """Return the groups of earlier sampling rounds, each with the rollouts of its extensions.

    An extension whose task has no group in `groups` is dropped. If its task has several groups, the
    last one is extended.

    Args:
        groups: The groups of earlier rounds.
        groups_of_round: The groups of this round. The extensions are those whose task has
            `extends_group`.
    """
    extended = [*groups]
    index_by_task = {group.task.key: i for i, group in enumerate(groups)}
    for extension in (group for group in groups_of_round if group.task.extends_group):
        if (i := index_by_task.get(extension.task.key)) is not None:
            extended[i] = extended[i].with_rollouts((*extended[i].rollouts, *extension.rollouts))
    return extended


def _new_groups(groups_of_round: Sequence[Group]) -> list[Group]:
    """Return the groups that do not extend a group of an earlier sampling round."""
    return [group for group in groups_of_round if not group.task.extends_group]


def index_rollouts(groups: Sequence[Group], first_index: int = 0) -> list[Group]:
    """Return the groups with their rollouts numbered consecutively, in `Rollout.index`.

    The first number is `first_index`. Filters remove, copy and add rollouts. A rollout is therefore
    identified by `Rollout.index`, and not by its place in a batch.
    """
    indices = count(first_index)
    return [
        group.with_rollouts(replace(rollout, index=next(indices)) for rollout in group.rollouts)
        for group in groups
    ]
