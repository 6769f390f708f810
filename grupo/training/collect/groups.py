"""Collects the groups of a step: draw tasks, generate, score, filter, and refill."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

import torch
from torch import Tensor

from grupo.algo.filters import Filter, kept_in_step
from grupo.core.interfaces import Actor, ClosableSessions, EnvSpec, open_env
from grupo.core.requires import merged_requires
from grupo.core.types import PRUNED, Group, Task
from grupo.distributed.base import SINGLE_RANK, Ranks
from grupo.distributed.exchange import exchange_groups, share_of_rank
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.storage.fault_injection import kill_point
from grupo.training.collect.sampling_round import SamplingRound
from grupo.training.collect.unfinished_exchange import exchange_unfinished
from grupo.training.collect.unfinished_groups import StepLimit, UnfinishedGroup
from grupo.util.exit_codes import EXIT_FAILED, CommandError


@dataclass(frozen=True)
class CollectedGroups:
    """The groups that a step generated, and those of them that it trains on.

    Args:
        sampled_groups: All groups.
        kept_groups: Those that the filter keeps.
        rank_of_rollout: The rank that generated each rollout, by the rollout's index; empty if
            that is not known.
        unfinished_groups: Those that the next step continues, in order.
    """

    sampled_groups: tuple[Group, ...]
    kept_groups: tuple[Group, ...]
    rank_of_rollout: tuple[int, ...] = ()
    unfinished_groups: tuple[UnfinishedGroup, ...] = ()

    def rank_of_rows(self, rollout: Tensor) -> Tensor:
        """The rank that generated each row of the batch of the kept groups; 0 if not known.

        Args:
            rollout: The rollout of each row, as in `Batch`, (N,).
        """
        ranks = dict(enumerate(self.rank_of_rollout))
        kept = (ranks.get(kept.index, 0) for group in self.kept_groups for kept in group.rollouts)
        return torch.tensor(list(kept), dtype=torch.long)[rollout]


async def collect_groups(
    method: Method,
    env: EnvSpec,
    actor: Actor,
    tasks: Sequence[Task],
    history: History,
    *,
    num_prompts: int,
    seed: int,
    ranks: Ranks = SINGLE_RANK,
    limit: StepLimit | None = None,
    unfinished: Sequence[UnfinishedGroup] = (),
) -> CollectedGroups:
    """Generate groups until `num_prompts` pass the filter or the curriculum returns no tasks.

    Args:
        method: Its curriculum draws tasks, its sampler generates and its filter selects groups.
        env: Replies to responses and scores rollouts.
        actor: The policy's handle for generating.
        tasks: The training tasks.
        history: Earlier groups; the number of tasks drawn is added to it.
        num_prompts: Number of groups to train on; with a `limit`, number of groups to begin, less
            those that the filter drops.
        seed: Seed of the curriculum.
        ranks: The processes that share the generation; every rank returns the groups of all.
        limit: Limit of the tokens of a rollout in this step; None if there is none.
        unfinished: Groups of earlier steps, which are continued.
    """
    opened = open_env(env)
    collection = _Collection()
    begun = list(unfinished)
    for resample_round in count():
        num_missing = num_prompts - len(collection.kept) - len(collection.paused)
        groups_so_far = tuple(collection.scored)
        request = CurriculumRequest(
            tasks, history, num_missing, seed, resample_round, groups_so_far
        )
        begun += _draw_groups(method, request, limit.step if limit else 0)
        if not begun:
            break
        kill_point("step/tasks_drawn")
        own = share_of_rank(ranks, len(begun))
        sampling_round = SamplingRound(method.sampler, opened, [begun[i] for i in own], limit)
        outcomes = dict(zip(own, await sampling_round.generate(actor, seed), strict=True))
        groups, paused = _exchange_outcomes(ranks, outcomes, begun, limit)
        kill_point("step/generated")
        collection.add(groups, paused, ranks.size, method.filter)
        kill_point("step/filtered")
        begun = []
    if collection.paused and isinstance(opened, ClosableSessions):
        opened.close()  # the next step opens sessions of its own
    return collection.result(method.filter, num_prompts + len(unfinished))


@dataclass
class _Collection:
    """The groups of the rounds of a step so far; fields as in `CollectedGroups`."""

    sampled: list[Group] = field(default_factory=list)
    scored: list[Group] = field(default_factory=list)  # without rollouts that failed
    kept: list[Group] = field(default_factory=list)
    rank_of_rollout: list[int] = field(default_factory=list)
    paused: list[UnfinishedGroup] = field(default_factory=list)

    def add(
        self,
        groups: Mapping[int, Group],
        paused: Mapping[int, UnfinishedGroup],
        num_ranks: int,
        group_filter: Filter,
    ) -> None:
        """Add the groups of a round by their index, of which rank `index % num_ranks` has each."""
        indexed = index_rollouts([*groups.values()], len(self.rank_of_rollout))
        for i, group in zip(groups, indexed, strict=True):
            self.rank_of_rollout += [i % num_ranks] * len(group.rollouts)
        complete = [drop_failed_rollouts(group) for group in indexed]
        scored = [group for group in complete if group.rollouts]
        for known, added in ((self.sampled, indexed), (self.scored, scored)):
            known += _extend_groups(known, added)
        self.kept += group_filter(_extend_groups(self.kept, scored))
        # the group that a paused one extends is trained on without it
        self.paused += [
            replace(group, task=replace(group.task, extends_group=False))
            for group in paused.values()
        ]

    def result(self, group_filter: Filter, max_kept: int) -> CollectedGroups:
        """The groups of the step, of which at most `max_kept` are trained on."""
        kept = tuple(kept_in_step(group_filter, self.kept, self.scored, max_kept))
        rank_of_rollout = tuple(self.rank_of_rollout)
        return CollectedGroups(tuple(self.sampled), kept, rank_of_rollout, tuple(self.paused))


def _draw_groups(
    method: Method, request: CurriculumRequest, first_step: int
) -> list[UnfinishedGroup]:
    """The groups of the tasks that the curriculum draws; they are counted in the history."""
    history = request.history
    new_tasks = method.curriculum(request)
    is_new = (not task.unfinished and not task.extends_group for task in new_tasks)
    history.count_drawn(sum(is_new))
    drawn = [_with_history(task, history, method) for task in new_tasks]
    return [
        UnfinishedGroup(task, first_step, (request.resample_round, i))
        for i, task in enumerate(drawn)
    ]


def _with_history(task: Task, history: History, method: Method) -> Task:
    """The task with everything that the method's sampler reads of earlier steps."""
    task = history.take_unfinished(history.with_replays(task))
    task = history.with_demonstrations(task, method.requires.demonstrations)
    return history.with_fold_states(task, merged_requires(method.sampler).task_folds)


def _exchange_outcomes(
    ranks: Ranks,
    own: Mapping[int, Group | UnfinishedGroup],
    begun: Sequence[UnfinishedGroup],
    limit: StepLimit | None,
) -> tuple[dict[int, Group], dict[int, UnfinishedGroup]]:
    """The groups of all ranks that have ended, and the others, by their index."""
    tasks = [group.task for group in begun]
    paused: dict[int, UnfinishedGroup] = {}
    if limit:
        own_paused = {i: group for i, group in own.items() if isinstance(group, UnfinishedGroup)}
        phase = Phase.UNFINISHED_EXCHANGED
        paused = exchange_unfinished(ranks, own_paused, begun, phase, "generate")
    ended = [i for i in range(len(begun)) if i not in paused]
    own_groups = {
        place: group for place, i in enumerate(ended) if isinstance(group := own.get(i), Group)
    }
    ended_tasks = [tasks[i] for i in ended]
    groups = exchange_groups(ranks, own_groups, ended_tasks, Phase.ROLLOUTS_GENERATED, "generate")
    return dict(zip(ended, groups, strict=True)), paused


def _extend_groups(groups: list[Group], added: Sequence[Group]) -> list[Group]:
    """Move rollouts that extend an earlier group of their task into it; the other groups remain.

    Args:
        groups: Earlier groups, changed in place; a group that is not there is not extended.
        added: Later groups.
    """
    place = {group.task.key: i for i, group in enumerate(groups)}
    extending = [group for group in added if group.task.extends_group]
    for group in extending:
        if (i := place.get(group.task.key)) is not None:
            groups[i] = replace(groups[i], rollouts=(*groups[i].rollouts, *group.rollouts))
    return [group for group in added if not group.task.extends_group]


def index_rollouts(groups: Sequence[Group], first_index: int = 0) -> list[Group]:
    """The groups, with rollouts whose `index` counts on from `first_index`.

    Filters remove, copy and add rollouts; by the index, a rollout of a batch is found again.
    """
    indices = count(first_index)
    return [
        replace(group, rollouts=tuple(replace(r, index=next(indices)) for r in group.rollouts))
        for group in groups
    ]


def drop_failed_rollouts(group: Group) -> Group:
    """The group without the rollouts that failed; empty if only one of several is left."""
    remaining = tuple(rollout for rollout in group.rollouts if not rollout.error)
    single = len(remaining) < 2 and len(remaining) < len(group.rollouts)
    return replace(group, rollouts=() if single else remaining)


class UnscoredStepError(CommandError, RuntimeError):
    """No rollout of a step could be scored, and the recipe's `on_unscored` is "stop"."""

    exit_code: ClassVar[int] = EXIT_FAILED


def first_error(groups: Sequence[Group]) -> str:
    """Why the first of the failed rollouts could not be scored; "" if none failed."""
    errors = (rollout.error for group in groups for rollout in group.rollouts)
    return next((error for error in errors if error not in ("", PRUNED)), "")


def check_any_scored(step: int, groups: Sequence[Group]) -> None:
    """Raise `UnscoredStepError` if every rollout of a step failed.

    Args:
        step: Number of the step, from 1.
        groups: All groups that the step generated.
    """
    rollouts = [r for group in groups for r in group.rollouts if r.error != PRUNED]
    if rollouts and all(rollout.error for rollout in rollouts):
        raise UnscoredStepError(
            f"step {step}: none of {len(rollouts)} rollouts could be scored."
            f" {first_error(groups)}. Mend the reward and resume, or train on with --on-unscored"
            " continue."
        )
