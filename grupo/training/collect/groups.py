"""Collects the groups of a step: draw tasks, generate, score, filter, and refill.

Two kinds of generation continue in a later step:

- An unfinished group, a `GroupInProgress`: the token limit of the step interrupted the group. The
  next step continues the group. No step trains on the group before it has ended.
- An unfinished rollout: the sampler stopped the rollout on purpose, and the group has ended. A
  later group of the same task continues the rollout.
"""

from collections.abc import Mapping, Sequence
from itertools import count

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
from grupo.training.collect.collected_groups import CollectedGroups, GroupsSoFar
from grupo.training.collect.sampling_round import SamplingRound
from grupo.training.collect.unfinished_exchange import exchange_unfinished_groups
from grupo.training.collect.unfinished_groups import GroupInProgress, RolloutTokenLimit


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
    """Generate groups in sampling rounds, until the curriculum returns no tasks.

    The request to the curriculum states how many groups are still missing.

    Args:
        method: Its curriculum draws tasks, its sampler generates and its filter selects groups.
        env: Replies to responses and scores rollouts.
        actor: The policy's handle for generating.
        tasks: The training tasks.
        history: The record of earlier groups, which this function changes: it counts the new tasks
            in `history.num_tasks_drawn` and removes the unfinished rollouts of drawn tasks.
        num_groups: Number of new groups that the first round requests; `unfinished_groups` are
            generated in addition. A later round requests `num_groups` minus the number of groups
            that are kept or unfinished by then, at least 0. In this number, a group that was
            continued counts like a new one.
        seed: Seed of the curriculum. With a token limit, the random numbers of a group are derived
            from this seed, from `GroupInProgress.rng_label` and from the step. Without a token
            limit, `actor` draws them.
        ranks: The processes that share the generation; every rank returns the groups of all ranks.
        token_limit: Maximum number of tokens that this step generates for one rollout. None means
            that this step generates every rollout to its end.
        unfinished_groups: Groups of earlier steps, which this step continues.
    """
    opened_env = open_env(env)
    groups_so_far = GroupsSoFar()
    groups_to_generate = list(unfinished_groups)
    # the first step of new groups; only the continuation of a group reads it, with a token limit
    step = token_limit.step if token_limit else 0
    for round_index in count():
        num_missing = groups_so_far.num_missing(num_groups)
        earlier = tuple(groups_so_far.without_failed_rollouts)
        request = CurriculumRequest(tasks, history, num_missing, seed, round_index, earlier)
        groups_to_generate += _draw_groups(method, request, step)
        if not groups_to_generate:
            break
        kill_point("step/tasks_drawn")
        ended, unfinished = await _generate_round(
            method.sampler, opened_env, actor, groups_to_generate, token_limit, seed, ranks
        )
        kill_point("step/generated")
        groups_so_far.add(ended, unfinished, num_ranks=ranks.size, group_filter=method.filter)
        kill_point("step/filtered")
        groups_to_generate = []
    if groups_so_far.unfinished and isinstance(opened_env, ClosableSessions):
        opened_env.close()  # unfinished groups have open sessions; the next step opens new ones
    return groups_so_far.select_for_step(
        method.filter, max_kept=num_groups + len(unfinished_groups)
    )


def _draw_groups(method: Method, request: CurriculumRequest, step: int) -> list[GroupInProgress]:
    """Draw tasks with the curriculum, and return a group without rollouts for each task.

    The history counts new tasks alone: a task with `unfinished_rollouts` or `extends_group` was
    counted when it was first drawn.
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
    # only statistics that the sampler reads: other components read statistics in the batch, or in
    # the curriculum's request
    return history.with_statistics(task, merged_requires(method.sampler).task_statistics)


async def _generate_round(
    sampler: Sampler,
    env: Env,
    actor: Actor,
    groups_to_generate: Sequence[GroupInProgress],
    token_limit: RolloutTokenLimit | None,
    seed: int,
    ranks: Ranks,
) -> tuple[dict[int, Group], dict[int, GroupInProgress]]:
    """Generate this rank's share of a sampling round, and exchange the groups with other ranks.

    Returns:
        The ended groups, and the groups that the token limit interrupted, of all ranks. Both are by
        index in the round.
    """
    own_indices = share_of_rank(ranks, len(groups_to_generate))
    own_groups = [groups_to_generate[i] for i in own_indices]
    outcomes = await SamplingRound(sampler, env, own_groups, token_limit).generate(actor, seed)
    own_outcomes = dict(zip(own_indices, outcomes, strict=True))
    return _exchange_outcomes(ranks, own_outcomes, groups_to_generate, token_limit)


def _exchange_outcomes(
    ranks: Ranks,
    own_outcomes: Mapping[int, Group | GroupInProgress],
    groups_to_generate: Sequence[GroupInProgress],
    token_limit: RolloutTokenLimit | None,
) -> tuple[dict[int, Group], dict[int, GroupInProgress]]:
    """Exchange the outcomes of a sampling round between the ranks.

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
    # `exchange_groups` takes places in the list of ended groups
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
