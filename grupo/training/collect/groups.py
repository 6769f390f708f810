"""Collects the groups of a step: draw tasks, generate, score, filter, and refill.

Two kinds of generation continue in a later step:

- An unfinished group, a `GroupInProgress`: the token limit of the step interrupted the group. The
  next step continues the group. No step trains on the group before it has ended.
- An unfinished rollout: the sampler stopped the rollout on purpose, and the group has ended. A
  later group of the same task continues the rollout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import torch
from torch import Tensor

from grupo.algo.filters import Filter, select_groups_of_step
from grupo.core.interfaces import Actor, ClosableSessions, Env, EnvSpec, open_env
from grupo.core.requires import merged_requires
from grupo.core.types import Group, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_groups, share_of_rank
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.rollouts.samplers import Sampler
from grupo.storage.fault_injection import kill_point
from grupo.training.collect.failed_rollouts import drop_failed_rollouts
from grupo.training.collect.sampling_round import SamplingRound
from grupo.training.collect.unfinished_exchange import exchange_unfinished_groups
from grupo.training.collect.unfinished_groups import GroupInProgress, RolloutTokenLimit


@dataclass(frozen=True)
class CollectedGroups:
    """The groups that a step generated, and the groups that it trains on.

    A group is sampled if its generation has ended in the step. A sampled group is kept if the
    filter selects it. The filter and the replay of stored rollouts may remove rollouts from a kept
    group, and the filter may add some.

    Args:
        sampled_groups: All groups that have ended; they may have unfinished rollouts.
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


async def collect_groups(
    method: Method,
    env: EnvSpec,
    actor: Actor,
    tasks: Sequence[Task],
    history: History,
    *,
    num_groups: int,
    seed: int,
    ranks: Ranks = SINGLE_RANK,
    token_limit: RolloutTokenLimit | None = None,
    unfinished_groups: Sequence[GroupInProgress] = (),
) -> CollectedGroups:
    """Generate groups in rounds, until the curriculum returns no tasks.

    The request to the curriculum states how many groups are still missing.

    Args:
        method: Its curriculum draws tasks, its sampler generates and its filter selects groups.
        env: Replies to responses and scores rollouts.
        actor: The policy's handle for generating.
        tasks: The training tasks.
        history: The record of earlier groups, which this function changes: it counts the new tasks
            in `history.num_tasks_drawn` and removes the unfinished rollouts of drawn tasks.
        num_groups: Number of new groups that the first round requests. A later round requests this
            number minus all groups that are kept or unfinished by then, the continued ones
            included, or 0 if these are more.
        seed: Seed of the curriculum. With a token limit, the random numbers of a group are derived
            from this seed, from the group's label and from the step. Without one, they are those of
            `actor`.
        ranks: The processes that share the generation; every rank returns the groups of all ranks.
        token_limit: Maximum number of tokens that this step generates for one rollout. None means
            that this step generates every rollout to its end.
        unfinished_groups: Groups of earlier steps, which this step continues.
    """
    opened_env = open_env(env)
    collection = _Collection()
    groups_to_generate = list(unfinished_groups)
    # Without a token limit, no group is continued later, and nothing reads its first step.
    step = token_limit.step if token_limit else 0
    for round_index in count():
        num_missing = max(0, num_groups - len(collection.kept) - len(collection.unfinished))
        groups_so_far = tuple(collection.without_failed_rollouts)
        request = CurriculumRequest(tasks, history, num_missing, seed, round_index, groups_so_far)
        groups_to_generate += _draw_groups(method, request, step)
        if not groups_to_generate:
            break
        kill_point("step/tasks_drawn")
        own_outcomes = await _generate_share(
            method.sampler, opened_env, actor, groups_to_generate, token_limit, seed, ranks
        )
        ended, unfinished = _exchange_outcomes(ranks, own_outcomes, groups_to_generate, token_limit)
        kill_point("step/generated")
        collection.add(ended, unfinished, ranks.size, method.filter)
        kill_point("step/filtered")
        groups_to_generate = []
    if collection.unfinished and isinstance(opened_env, ClosableSessions):
        opened_env.close()  # unfinished groups have open sessions; the next step opens new ones
    return collection.result(method.filter, num_groups + len(unfinished_groups))


@dataclass
class _Collection:
    """The groups of all rounds of a step so far.

    In a later round, a curriculum may draw a task again and set `Task.extends_group`. The new group
    is an extension: its rollouts are added to the task's group of the earlier round.

    Args:
        sampled: The groups whose generation has ended.
        without_failed_rollouts: The sampled groups without their failed rollouts; empty groups are
            dropped.
        kept: The groups that the filter selected among those of `without_failed_rollouts`.
        rank_of_rollout: The rank that generated each rollout, by `Rollout.index`.
        unfinished: The groups that the next step continues.
    """

    sampled: list[Group] = field(default_factory=list)
    without_failed_rollouts: list[Group] = field(default_factory=list)
    kept: list[Group] = field(default_factory=list)
    rank_of_rollout: list[int] = field(default_factory=list)
    unfinished: list[GroupInProgress] = field(default_factory=list)

    def add(
        self,
        ended: Mapping[int, Group],
        unfinished: Mapping[int, GroupInProgress],
        num_ranks: int,
        group_filter: Filter,
    ) -> None:
        """Add the groups of a round.

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
        new_groups = _without_extensions(without_failed_rollouts)
        self.sampled = [*with_extensions(self.sampled, sampled), *_without_extensions(sampled)]
        self.without_failed_rollouts = [
            *with_extensions(self.without_failed_rollouts, without_failed_rollouts),
            *new_groups,
        ]
        # Extensions are not filtered: the filter has decided about the groups that they extend.
        self.kept = [
            *with_extensions(self.kept, without_failed_rollouts),
            *group_filter(new_groups),
        ]
        # This step trains on an extended group without waiting for an unfinished extension. The
        # next step continues the extension as a separate group.
        self.unfinished += [
            replace(group, task=replace(group.task, extends_group=False))
            for group in unfinished.values()
        ]

    def result(self, group_filter: Filter, max_kept: int) -> CollectedGroups:
        """Return the groups of the step; the step trains on at most `max_kept` groups."""
        # a `StepFilter` may now add groups; it sees all groups of the step
        kept = tuple(
            select_groups_of_step(group_filter, self.kept, self.without_failed_rollouts, max_kept)
        )
        rank_of_rollout = tuple(self.rank_of_rollout)
        return CollectedGroups(tuple(self.sampled), kept, rank_of_rollout, tuple(self.unfinished))


def _draw_groups(method: Method, request: CurriculumRequest, step: int) -> list[GroupInProgress]:
    """Draw tasks with the curriculum, and return a group without rollouts for each task.

    The history counts each task that neither continues rollouts nor extends a group.
    """
    history = request.history
    drawn_tasks = method.curriculum(request)
    is_new = (not task.unfinished_rollouts and not task.extends_group for task in drawn_tasks)
    history.count_drawn_tasks(sum(is_new))
    tasks = [_with_history(task, history, method) for task in drawn_tasks]
    return [
        GroupInProgress(task, first_step=step, rng_label=(request.round_index, i))
        for i, task in enumerate(tasks)
    ]


def _with_history(task: Task, history: History, method: Method) -> Task:
    """Return the task with all data of earlier steps that the method's sampler reads.

    These are earlier rollouts of the task, its unfinished rollouts (which are removed from the
    history), similar solved tasks, and the states of the task's statistics.
    """
    task = history.take_unfinished_rollouts(history.with_replays(task))
    task = history.with_demonstrations(task, method.requires.demonstrations)
    # only the sampler reads statistics in the task
    return history.with_statistics(task, merged_requires(method.sampler).task_statistics)


async def _generate_share(
    sampler: Sampler,
    env: Env,
    actor: Actor,
    groups_to_generate: Sequence[GroupInProgress],
    token_limit: RolloutTokenLimit | None,
    seed: int,
    ranks: Ranks,
) -> dict[int, Group | GroupInProgress]:
    """Generate this rank's share of the groups of a round, and return them by index in the round.

    A group that the token limit interrupts is returned as a `GroupInProgress`.
    """
    own_indices = share_of_rank(ranks, len(groups_to_generate))
    own_groups = [groups_to_generate[i] for i in own_indices]
    outcomes = await SamplingRound(sampler, env, own_groups, token_limit).generate(actor, seed)
    return dict(zip(own_indices, outcomes, strict=True))


def _exchange_outcomes(
    ranks: Ranks,
    own_outcomes: Mapping[int, Group | GroupInProgress],
    groups_to_generate: Sequence[GroupInProgress],
    token_limit: RolloutTokenLimit | None,
) -> tuple[dict[int, Group], dict[int, GroupInProgress]]:
    """Exchange the outcomes of a round between the ranks.

    Generation has its own channel, because another thread may run the updates.

    Args:
        ranks: The processes that share the generation.
        own_outcomes: The groups of this rank after the round, by index in the round.
        groups_to_generate: The groups of all ranks before the round.
        token_limit: Limit of the tokens of a rollout in this step; None if there is none.

    Returns:
        The ended groups and the unfinished groups of all ranks, both by index in the round.
    """
    unfinished: dict[int, GroupInProgress] = {}
    if token_limit:
        own_unfinished = {
            i: group for i, group in own_outcomes.items() if isinstance(group, GroupInProgress)
        }
        phase = Phase.UNFINISHED_GROUPS_EXCHANGED
        unfinished = exchange_unfinished_groups(
            ranks, own_unfinished, groups_to_generate, phase, channel="generate"
        )
    # `exchange_groups` numbers the ended groups only, from 0
    ended_indices = [i for i in range(len(groups_to_generate)) if i not in unfinished]
    own_ended = {
        index_among_ended: group
        for index_among_ended, i in enumerate(ended_indices)
        if isinstance(group := own_outcomes.get(i), Group)
    }
    tasks = [groups_to_generate[i].task for i in ended_indices]
    phase = Phase.ROLLOUTS_GENERATED
    ended = exchange_groups(ranks, own_ended, tasks, phase, channel="generate")
    return dict(zip(ended_indices, ended, strict=True)), unfinished


def with_extensions(groups: Sequence[Group], groups_of_round: Sequence[Group]) -> list[Group]:
    """Return the groups of earlier rounds, each with the rollouts of its extensions.

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


def _without_extensions(groups_of_round: Sequence[Group]) -> list[Group]:
    """Return the groups that do not extend a group of an earlier round."""
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
