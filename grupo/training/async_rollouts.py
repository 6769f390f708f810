"""Sampling for later steps while the update runs."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from grupo.algo.losses.importance_correction import Corrected, Importance, Truncated
from grupo.core.component import walk
from grupo.core.types import Task
from grupo.method import Method
from grupo.training import pending_steps_json
from grupo.training.collect import Gathered


@dataclass(frozen=True)
class Sampled:
    """What was sampled for a step, and how many tasks had been handed out after it."""

    gathered: Gathered
    asked: int


class Ahead:
    """Rollouts of later steps, sampled one step after the other in a thread of their own."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "ahead")
        self.waiting: deque[Future[Sampled]] = deque()

    def ask(self, sample: Callable[[int], Sampled], asked: int) -> None:
        """Let one more step be sampled, after so many tasks, or those of the step before it."""
        before = self.waiting[-1] if self.waiting else None
        self.waiting.append(
            self.thread.submit(lambda: sample(before.result().asked if before else asked))
        )

    def next(self) -> Sampled:
        """What was sampled for the next step, once it is."""
        return self.waiting.popleft().result()

    def all(self) -> list[Sampled]:
        """Everything under way, once it is sampled."""
        return [future.result() for future in self.waiting]

    def to_data(self) -> list[Any]:
        """What is under way, as plain data; it is waited for."""
        return [[pending_steps_json.to_data(one.gathered), one.asked] for one in self.all()]

    def from_data(self, data: Sequence[Any], tasks: Sequence[Task]) -> None:
        """Have under way again what `to_data` wrote."""
        self.waiting.clear()
        for gathered, asked in data:
            done: Future[Sampled] = Future()
            done.set_result(Sampled(pending_steps_json.from_data(gathered, tasks), asked))
            self.waiting.append(done)


def corrected(method: Method) -> Method:
    """The method with the policy that sampled weighed in, unless it does so itself.

    Truncated importance sampling, w = min(pi_old / pi_sampler, 2).
    """
    own = any(isinstance(part, Corrected) for part in walk(method.loss))
    return method if own else method.but(loss=Corrected(method.loss, Importance(Truncated(2.0))))
