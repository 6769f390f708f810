"""Sampling for later steps while the update runs."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from grupo.algo.losses.importance_correction import CorrectedLoss, ImportanceWeight, TruncatedIS
from grupo.core.component import walk
from grupo.core.types import Task
from grupo.method import Method
from grupo.training import pending_steps_json
from grupo.training.collect import CollectedGroups


@dataclass(frozen=True)
class PendingStep:
    """What was sampled for a step, and how many tasks had been handed out after it."""

    collected: CollectedGroups
    tasks_drawn: int


class AsyncRolloutQueue:
    """Rollouts of later steps, sampled one step after the other in a thread of their own."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "ahead")
        self.pending: deque[Future[PendingStep]] = deque()

    def submit(self, generate_step: Callable[[int], PendingStep], tasks_drawn: int) -> None:
        """Let one more step be sampled, after so many tasks, or those of the step before it."""
        before = self.pending[-1] if self.pending else None
        self.pending.append(
            self.executor.submit(
                lambda: generate_step(before.result().tasks_drawn if before else tasks_drawn)
            )
        )

    def pop(self) -> PendingStep:
        """What was sampled for the next step, once it is."""
        return self.pending.popleft().result()

    def wait_all(self) -> list[PendingStep]:
        """Everything under way, once it is sampled."""
        return [future.result() for future in self.pending]

    def to_data(self) -> list[Any]:
        """What is under way, as plain data; it is waited for."""
        return [
            [pending_steps_json.to_data(one.collected), one.tasks_drawn] for one in self.wait_all()
        ]

    def from_data(self, data: Sequence[Any], tasks: Sequence[Task]) -> None:
        """Have under way again what `to_data` wrote."""
        self.pending.clear()
        for gathered, asked in data:
            done: Future[PendingStep] = Future()
            done.set_result(PendingStep(pending_steps_json.from_data(gathered, tasks), asked))
            self.pending.append(done)


def with_importance_correction(method: Method) -> Method:
    """The method with the policy that sampled weighed in, unless it does so itself.

    Truncated importance sampling, w = min(pi_old / pi_sampler, 2).
    """
    own = any(isinstance(part, CorrectedLoss) for part in walk(method.loss))
    return (
        method
        if own
        else method.replace(loss=CorrectedLoss(method.loss, ImportanceWeight(TruncatedIS(2.0))))
    )
