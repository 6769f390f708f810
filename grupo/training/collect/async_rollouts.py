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
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.collect.unfinished_groups import GroupInProgress, restore_groups


@dataclass(frozen=True)
class GeneratedStep:
    """The groups of one step, with the counts of its generation.

    Args:
        collected: The sampled, the kept and the unfinished groups of the step.
        num_tasks_drawn: Number of tasks drawn in the run, up to and including this step.
        generated_tokens: Number of generated tokens (or denoising steps), by the role of the
            policy, such as `hinter` (`Rollout.role`).
        external_usage: Counts of work outside this process, such as requests to a judge, by name.
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
    """The state that the generation of one step passes to the generation of the next step.

    Args:
        num_tasks_drawn: Number of tasks drawn in the run.
        unfinished_groups: Groups that the earlier of the two steps left unfinished; the later step
            continues them.
    """

    num_tasks_drawn: int
    unfinished_groups: tuple[GroupInProgress, ...] = ()


GenerateStep = Callable[[GenerationState, Future[None]], GeneratedStep]


@dataclass(frozen=True)
class _QueuedStep:
    """A step that is being generated. When `stop` is set, the generation is cancelled."""

    future: Future[GeneratedStep]
    stop: Future[None]


class AsyncRolloutQueue:
    """Groups of later steps, generated one step after the other in a background thread."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "async-rollouts")
        self.queued_steps: deque[_QueuedStep] = deque()

    def submit(self, generate_step: GenerateStep, initial_state: GenerationState) -> None:
        """Queue one more step.

        Args:
            generate_step: Generates the step from its initial state. The second argument is a
                future; when the future is set, the generation is cancelled.
            initial_state: The initial state of the step, used only if the queue is empty. Otherwise
                the step takes over the state that the last step of the queue passes on.
        """
        previous_step = self.queued_steps[-1].future if self.queued_steps else None
        stop = Future[None]()

        def generate() -> GeneratedStep:
            state = previous_step.result().next_state if previous_step else initial_state
            return generate_step(state, stop)

        self.queued_steps.append(_QueuedStep(self.executor.submit(generate), stop))

    def pop(self) -> GeneratedStep:
        """Wait until the oldest step of the queue has been generated, and return it."""
        step = self.queued_steps[0].future.result()
        # only now: if the wait is interrupted, `close` must still find the step to cancel it
        self.queued_steps.popleft()
        return step

    def wait_all(self) -> list[GeneratedStep]:
        """Wait until every step of the queue has been generated, and return them, oldest first."""
        return [queued.future.result() for queued in self.queued_steps]

    def close(self) -> None:
        """Cancel the generation of all steps, and wait until it has ended."""
        for queued in reversed(self.queued_steps):
            queued.future.cancel()
            queued.stop.set_result(None)
        self.queued_steps.clear()
        self.executor.shutdown()

    def to_data(self) -> list[Any]:
        """Wait until all steps have been generated, and return the queue as plain data."""
        return [
            [
                _groups_to_data(step.collected),
                step.num_tasks_drawn,
                dict(step.generated_tokens),
                dict(step.external_usage),
            ]
            for step in self.wait_all()
        ]

    def restore(self, data: Sequence[Any], tasks: Sequence[Task]) -> None:
        """Inverse of `to_data`; `tasks` must include the task of each group."""
        self.queued_steps.clear()
        for collected, *counts in data:
            groups = _groups_from_data(collected, tasks)
            future = Future[GeneratedStep]()
            future.set_result(GeneratedStep(groups, *counts))
            self.queued_steps.append(_QueuedStep(future, Future()))


def with_stale_correction(
    method: Method, stale_correction: Callable[[Tensor], Tensor] | None
) -> Method:
    """Return the method with its loss multiplied by stale_correction(pi_old / pi_sampler).

    Each action has its own ratio. A method whose loss already corrects for stale rollouts is
    returned unchanged.

    Args:
        method: The method.
        stale_correction: Maps the ratio to the weight of the loss; None changes nothing.
    """
    if stale_correction is None or has_correction(method):
        return method
    return method.replace(loss=CorrectedLoss(method.loss, ImportanceWeight(stale_correction)))


def _groups_to_data(collected: CollectedGroups) -> dict[str, Any]:
    """The groups as JSON data.

    Kept groups share rollouts with the sampled groups. Each rollout is therefore stored once, and a
    group stores the indices of its rollouts.
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
    """Inverse of `_groups_to_data`; `tasks` must include the task of each group."""
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
