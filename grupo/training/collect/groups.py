"""Collects the groups of a step: draw tasks, generate, score, filter, and refill.

Two kinds of generation continue in a later step:

- An unfinished group, a `GroupInProgress`: the token limit of the step interrupted the group. The
  next step continues the group. No step trains on the group before it has ended.
- An unfinished rollout: the sampler stopped the rollout on purpose, and the group has ended. A
  later group of the same task continues the rollout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        history: The record of earlier groups. The function counts the new tasks in it, and removes
            the unfinished rollouts of drawn tasks from it.
        num_groups: Number of new groups that the first round requests. A later round requests as
            many as are missing, see `GroupsSoFar.num_missing`.
        seed: Seed of the curriculum, and with a token limit of the groups' random numbers.
        ranks: The processes that share the generation; every rank returns the groups of all ranks.
        token_limit: Maximum number of tokens that this step generates for one rollout. None means
            that this step generates every rollout to its end.
        unfinished_groups: Groups of earlier steps, which the first round continues in addition to
            the new groups.
    """
    opened_env = open_env(env)
    generator = _RoundGenerator(method.sampler, opened_env, actor, seed, ranks, token_limit)
    groups_so_far = GroupsSoFar()
    continued_groups = list(unfinished_groups)
    for round_index in count():
        num_missing = groups_so_far.num_missing(num_groups)
        earlier = tuple(groups_so_far.without_failed_rollouts)
        request = CurriculumRequest(tasks, history, num_missing, seed, round_index, earlier)
        groups_to_generate = [*continued_groups, *_draw_groups(method, request, generator.step)]
        if not groups_to_generate:
            break
        kill_point("step/tasks_drawn")
        ended, unfinished = await generator(groups_to_generate)
        kill_point("step/generated")
        groups_so_far.add(ended, unfinished, num_ranks=ranks.size, group_filter=method.filter)
        kill_point("step/filtered")
        continued_groups = []
    if groups_so_far.unfinished and isinstance(opened_env, ClosableSessions):
        opened_env.close()  # unfinished groups have open sessions; the next step opens new ones
    max_kept = num_groups + len(unfinished_groups)
    return groups_so_far.select_for_step(method.filter, max_kept=max_kept)


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


@dataclass(frozen=True)
class _RoundGenerator:
    """Generates the groups of a sampling round: each rank generates a share and returns all groups.

    Args:
        sampler: Generates the groups.
        env: Replies to responses and scores rollouts.
        actor: The policy's handle for generating. Without a token limit, it draws random numbers.
        seed: With a token limit, the random numbers of a group are derived from this seed, from
            `GroupInProgress.rng_label` and from the step.
        ranks: The processes that share the generation.
        token_limit: Limit of the tokens of a rollout in this step; None if there is none.
    """

    sampler: Sampler
    env: Env
    actor: Actor
    seed: int
    ranks: Ranks
    token_limit: RolloutTokenLimit | None

    @property
    def step(self) -> int:
        """The first step of new groups, which only a step with a token limit reads."""
        return self.token_limit.step if self.token_limit else 0

    async def __call__(
        self, groups: Sequence[GroupInProgress]
    ) -> tuple[dict[int, Group], dict[int, GroupInProgress]]:
        """Return the groups of all ranks that ended, and those that the token limit interrupted.

        Both are by index in the round.

        Args:
            groups: The groups of all ranks before the round.
        """
        own_indices = share_of_rank(self.ranks, len(groups))
        own_groups = [groups[i] for i in own_indices]
        sampling_round = SamplingRound(self.sampler, self.env, own_groups, self.token_limit)
        outcomes = await sampling_round.generate(self.actor, self.seed)
        return self._exchange(groups, dict(zip(own_indices, outcomes, strict=True)))

    def _exchange(
        self,
        groups: Sequence[GroupInProgress],
        own_outcomes: Mapping[int, Group | GroupInProgress],
    ) -> tuple[dict[int, Group], dict[int, GroupInProgress]]:
        """Exchange the groups of a round between the ranks.

        Generation has its own channel, because another thread may run the updates.

        Args:
            groups: The groups of all ranks before the round.
            own_outcomes: The groups of this rank after the round, by index in the round.
        """
        unfinished: dict[int, GroupInProgress] = {}
        if self.token_limit:
            own_unfinished = {
                i: group for i, group in own_outcomes.items() if isinstance(group, GroupInProgress)
            }
            phase = Phase.UNFINISHED_GROUPS_EXCHANGED
            unfinished = exchange_unfinished_groups(
                self.ranks, own_unfinished, groups, phase, channel="generate"
            )
        # `exchange_groups` takes places in the list of ended groups
        ended_indices = [i for i in range(len(groups)) if i not in unfinished]
        own_ended = {
            index_among_ended: group
            for index_among_ended, i in enumerate(ended_indices)
            if isinstance(group := own_outcomes.get(i), Group)
        }
        tasks = [groups[i].task for i in ended_indices]
        phase = Phase.ROLLOUTS_GENERATED
        ended = exchange_groups(self.ranks, own_ended, tasks, phase, channel="generate")
        return dict(zip(ended_indices, ended, strict=True)), unfinished
