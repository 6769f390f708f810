"""Runs steps of a curriculum and a filter over scripted groups, as the training loop does."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grupo.core.component import component
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.rollouts.curricula import Curriculum, CurriculumRequest, next_tasks
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.collect.groups import collect_groups

SEED = 3


def make_tasks(count: int) -> list[Task]:
    """Tasks with the keys "0", "1" and so on."""
    return [Task(str(i), "?") for i in range(count)]


def make_history(method: Method) -> History:
    """An empty history with the statistics that the method declares."""
    return History(statistics_by_task=StatisticStore(method.requires.task_statistics))


def rollout(reward: float, length: int = 1) -> Rollout:
    """A rollout of one response."""
    response = Response((0,) * length, (-1.0,) * length)
    return Rollout((("?", response),), reward=reward)


@dataclass
class Answers:
    """The scripted policy: `answer` returns the rollouts of a task each time it is sampled."""

    answer: Callable[[Task], Sequence[Rollout]]


@dataclass
class Log:
    """The keys of the tasks of each round."""

    entries: list[list[str]] = field(default_factory=list)


@component
class Scripted:
    """A sampler that returns scripted rollouts.

    Args:
        answers: The script.
    """

    answers: Answers

    async def __call__(self, task: Task, env: object, actor: object) -> Group:
        return Group(task, tuple(self.answers.answer(task)))


@component
class Recorded:
    """A curriculum that writes down the keys of the tasks of each round that has some.

    Args:
        inner: The curriculum.
        rounds: The rounds.
    """

    inner: Curriculum
    rounds: Log

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        tasks = self.inner(request)
        if tasks:
            self.rounds.entries.append([task.key for task in tasks])
        return tasks


class NoActor:
    """The handle on a policy that is never asked to generate."""

    def fork(self, *label: object) -> "NoActor":
        return self


class NoEnv:
    """An environment that is never asked."""

    async def reply(self, task: Task, rollout: Rollout) -> None:
        raise AssertionError

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[object]:
        raise AssertionError


@dataclass(frozen=True)
class CollectedStep:
    """A step.

    Args:
        rounds: The keys of the tasks that each round draws.
        collected: The groups.
    """

    rounds: list[list[str]]
    collected: CollectedGroups


def collect_steps(
    method: Method,
    answer: Callable[[Task], Sequence[Rollout]],
    tasks: Sequence[Task],
    *,
    num_groups: int,
    num_steps: int,
    history: History | None = None,
) -> list[CollectedStep]:
    """The groups of each step; the history keeps them, as between the steps of a run."""
    history = make_history(method) if history is None else history
    curriculum = method.curriculum
    steps = []
    for step in range(num_steps):
        log = Log()
        method = method.replace(
            sampler=Scripted(Answers(answer)), curriculum=Recorded(curriculum, log)
        )
        collected = asyncio.run(
            collect_groups(
                method, NoEnv(), NoActor(), tasks, history, num_groups=num_groups, seed=SEED
            )
        )
        history.append_groups(step, collected.sampled_groups, method.requires.replay_rules)
        steps.append(CollectedStep(log.entries, collected))
    return steps


def stream(tasks: Sequence[Task], count: int) -> list[Task]:
    """The first `count` tasks of the shuffled sequence."""
    return list(next_tasks(CurriculumRequest(tasks, History(), count, SEED)))


def request(
    tasks: Sequence[Task], history: History, num_tasks: int, **fields: object
) -> CurriculumRequest:
    """A request to a curriculum."""
    return replace(CurriculumRequest(tasks, history, num_tasks, SEED), **fields)


def frequencies(
    draw: Callable[[int], Sequence[str]], num_seeds: int
) -> Mapping[tuple[str, ...], float]:
    """How often each outcome is drawn over the seeds 0, 1 and so on."""
    counts: dict[tuple[str, ...], int] = {}
    for seed in range(num_seeds):
        outcome = tuple(draw(seed))
        counts[outcome] = counts.get(outcome, 0) + 1
    return {outcome: count / num_seeds for outcome, count in counts.items()}


def assert_frequencies(
    found: Mapping[tuple[str, ...], float],
    expected: Mapping[tuple[str, ...], float],
    num_seeds: int,
) -> None:
    """Fail if a frequency is further from its probability than five standard deviations."""
    assert abs(sum(expected.values()) - 1) < 1e-6
    for outcome in {*found, *expected}:
        p = expected.get(outcome, 0.0)
        tolerance = 5 * (p * (1 - p) / num_seeds) ** 0.5 + 1e-3 * (p > 0)
        assert abs(found.get(outcome, 0.0) - p) <= tolerance, (outcome, found.get(outcome), p)
