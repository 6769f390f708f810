"""Asynchronous rollouts: groups of later steps are generated while the update runs."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from grupo.algo.losses.importance_correction import CorrectedLoss, ImportanceWeight
from grupo.config.staleness import has_correction
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.storage import rollout_json
from grupo.training.collect.groups import CollectedGroups
from grupo.training.collect.unfinished_groups import GroupInProgress, restore_groups


@dataclass(frozen=True)
class GeneratedStep:
    """The groups of one step, with the counts of its generation.

    Args:
        collected: The generated groups, the kept groups, and the groups that the next step
            continues.
        num_tasks_drawn: Number of tasks drawn in the run, up to and including this step.
        generated_tokens: Number of items that were generated for the step, by role.
        external_usage: Counts of work that its rewards did outside this process, by name.
    """

    collected: CollectedGroups
    num_tasks_drawn: int
    generated_tokens: Mapping[str, int]
    external_usage: Mapping[str, float] = field(default_factory=dict)

    @property
    def next_state(self) -> "GenerationState":
        """The state that the generation of the next step takes over."""
        return GenerationState(self.num_tasks_drawn, self.collected.unfinished_groups)


@dataclass(frozen=True)
class GenerationState:
    """The state that the generation of a step takes over from that of the step before.

    Args:
        num_tasks_drawn: Number of tasks drawn in the run.
        unfinished_groups: The groups that the step continues.
    """

    num_tasks_drawn: int
    unfinished_groups: tuple[GroupInProgress, ...] = ()


GenerateStep = Callable[[GenerationState, Future[None]], GeneratedStep]


@dataclass(frozen=True)
class _QueuedStep:
    """A step that is being generated; its generation is cancelled when `stop` is done."""

    result: Future[GeneratedStep]
    stop: Future[None]


class AsyncRolloutQueue:
    """Groups of later steps, generated one step after the other in a background thread."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "async-rollouts")
        self.queued_steps: deque[_QueuedStep] = deque()

    def submit(self, generate_step: GenerateStep, start: GenerationState) -> None:
        """Queue one more step.

        Args:
            generate_step: Generates the step, from its start and a future that cancels the
                generation when it is done.
            start: The start if the queue is empty; otherwise it is taken from the previous step.
        """
        previous = self.queued_steps[-1].result if self.queued_steps else None
        stop = Future[None]()

        def generate() -> GeneratedStep:
            return generate_step(previous.result().next_state if previous else start, stop)

        self.queued_steps.append(_QueuedStep(self.executor.submit(generate), stop))

    def pop(self) -> GeneratedStep:
        """The oldest step of the queue; waits until it has been generated."""
        step = self.queued_steps[0].result.result()
        self.queued_steps.popleft()  # not before: `close` must find a step that is being generated
        return step

    def wait_all(self) -> list[GeneratedStep]:
        """Wait until every step of the queue has been generated; returns them, oldest first."""
        return [queued.result.result() for queued in self.queued_steps]

    def close(self) -> None:
        """Cancel the generation of all steps, and wait until it has ended."""
        for queued in reversed(self.queued_steps):
            queued.result.cancel()
            queued.stop.set_result(None)
        self.queued_steps.clear()
        self.executor.shutdown()

    def to_data(self) -> list[Any]:
        """The queue as plain data; waits until all its steps have been generated."""
        steps = self.wait_all()
        return [
            [
                _groups_to_data(s.collected),
                s.num_tasks_drawn,
                dict(s.generated_tokens),
                dict(s.external_usage),
            ]
            for s in steps
        ]

    def restore(self, data: Sequence[Any], tasks: Sequence[Task]) -> None:
        """Replace the steps of the queue by those that `to_data` returned from `tasks`."""
        self.queued_steps.clear()
        for collected, *counts in data:
            groups = _groups_from_data(collected, tasks)
            result = Future[GeneratedStep]()
            result.set_result(GeneratedStep(groups, *counts))
            self.queued_steps.append(_QueuedStep(result, Future()))


def with_stale_correction(
    method: Method, stale_correction: Callable[[Tensor], Tensor] | None
) -> Method:
    """Return the method with its loss multiplied by stale_correction(pi_old / pi_sampler).

    The ratio is that of each action. A method whose loss has such a correction is not changed.

    Args:
        method: The method.
        stale_correction: `stale_correction` of a recipe; None changes no method.
    """
    if stale_correction is None or has_correction(method):
        return method
    return method.replace(loss=CorrectedLoss(method.loss, ImportanceWeight(stale_correction)))


def _groups_to_data(collected: CollectedGroups) -> dict[str, Any]:
    """The groups as JSON can hold them.

    Each rollout is stored once; a group holds its task's key and the indices of its rollouts.
    """
    groups = (*collected.sampled_groups, *collected.kept_groups)
    rollouts = {id(rollout): rollout for group in groups for rollout in group.rollouts}
    index = {rollout_id: i for i, rollout_id in enumerate(rollouts)}

    def group_data(group: Group) -> list[Any]:
        task = group.task
        return [task.key, task.group_size, task.prompt, [index[id(r)] for r in group.rollouts]]

    return {
        "rollouts": [rollout_json.to_data(rollout) for rollout in rollouts.values()],
        "sampled_groups": [group_data(group) for group in collected.sampled_groups],
        "kept_groups": [group_data(group) for group in collected.kept_groups],
        "unfinished_groups": [group.to_data() for group in collected.unfinished_groups],
    }


def _groups_from_data(data: Mapping[str, Any], tasks: Sequence[Task]) -> CollectedGroups:
    """The groups that `_groups_to_data` converted; `tasks` must include the tasks of all groups."""
    keys = {key for name in ("sampled_groups", "kept_groups") for key, *_ in data[name]}
    task_by_key = {task.key: task for task in tasks if task.key in keys}
    rollouts = [rollout_json.from_data(entry) for entry in data["rollouts"]]

    def group(key: str, group_size: int, prompt: Any, indices: Sequence[int]) -> Group:
        prompt = rollout_json.as_observation(prompt)
        task = replace(task_by_key[key], group_size=group_size, prompt=prompt)
        return Group(task, tuple(rollouts[i] for i in indices))

    sampled = tuple(group(*entry) for entry in data["sampled_groups"])
    kept = tuple(group(*entry) for entry in data["kept_groups"])
    unfinished = restore_groups(data["unfinished_groups"], tasks)
    return CollectedGroups(sampled, kept, unfinished_groups=unfinished)
