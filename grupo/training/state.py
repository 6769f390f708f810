"""What a run is at the end of a step."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizer import restore, state_of
from grupo.core.errors import Refused, nearest
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.models.aux_models import Company
from grupo.models.base import Policy
from grupo.rollouts.history import History
from grupo.storage.checkpoint import Checkpoint
from grupo.training.async_rollouts import Ahead


class State:
    """All that changes while a run goes: a checkpoint holds this, and a run needs no more.

    Random numbers are not among it: every stream is derived from the seed, a name and the step.
    """

    def __init__(
        self,
        policy: Policy,
        optimizers: Mapping[str, Optimizer],
        company: Company,
        tasks: Sequence[Task],
    ) -> None:
        self.policy, self.optimizers, self.company = policy, optimizers, company
        self.tasks, self.ahead = tasks, Ahead()
        self.history, self.step = History(), 0
        self.scores: dict[str, Any] = {}  # of the held-out tasks, by when they were attempted
        self.tokens, self.failed, self.seconds = 0, 0, 0.0
        self.ledger: dict[str, float] = {}  # tokens and seconds of all steps, by what they were for
        self.mismatch = math.inf  # of sampler and trainer, when it was last measured
        self.finished = False

    def record(self, groups: Sequence[Group], numbers: Mapping[str, float], method: Method) -> None:
        """Note a step: what was sampled, what it cost, and what the method wants remembered."""
        self.history.record(self.step, groups, method.remembers, method.replays)
        self.history.measure(_read(numbers, method.readings))
        self.company.after(self.step + 1, self.policy)
        self.tokens += int(numbers["tokens/sampled"])
        self.failed += int(numbers["rollouts/failed"])
        self.seconds += numbers["time/step"]
        self.mismatch = numbers.get("mismatch/mean", self.mismatch)
        for name in (n for n in numbers if n.startswith(("time/", "tokens/"))):
            self.ledger[name] = self.ledger.get(name, 0.0) + numbers[name]
        self.step += 1

    @property
    def trained(self) -> float:
        """Seconds of all steps, evaluations not counted."""
        return self.ledger.get("time/step", 0.0)

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """What is saved bit for bit."""
        optimizers = {name: state_of(one) for name, one in self.optimizers.items()}
        beside = {"helpers": self.policy.helpers.state_dict(), "reference": self.company.following}
        used = {name: tensors for name, tensors in beside.items() if tensors}
        history = self.history.tensors()
        return {"weights": self.policy.weights(), **optimizers, "history": history, **used}

    def data(self) -> dict[str, Any]:
        """What is saved as plain data."""
        return {
            "history": self.history.to_data(),
            "scores": self.scores,
            "tokens": self.tokens,
            "failed": self.failed,
            "seconds": self.seconds,
            "ledger": self.ledger,
            "mismatch": self.mismatch,
            "budget": self.policy.budget,
            "ahead": self.ahead.to_data(),
            "finished": self.finished,
        }

    def restore(self, found: Checkpoint) -> None:
        """Become what was saved."""
        self.policy.load(found.tensors["weights"])
        for name, optimizer in self.optimizers.items():
            restore(optimizer, found.tensors[name])
        self.policy.helpers.load_state_dict(dict(found.tensors.get("helpers", {})))
        self.company.restore(found.tensors.get("reference", {}))
        self.history = History.from_data(found.data["history"], found.tensors["history"])
        self.step = found.step
        self.scores = dict(found.data["scores"])
        self.tokens, self.failed = found.data["tokens"], found.data["failed"]
        self.seconds, self.finished = found.data["seconds"], found.data["finished"]
        self.ledger, self.mismatch = dict(found.data["ledger"]), found.data["mismatch"]
        self.policy.budget = found.data["budget"]
        self.ahead.from_data(found.data["ahead"], self.tasks)


def _read(numbers: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The numbers that controllers follow; a step that updated nothing has none of some."""
    for name in names:
        if name not in numbers and "loss" in numbers:
            said = f"method: a controller follows {name!r}, and no metric is called so."
            raise Refused(f"{said} {nearest(name, numbers)}")
    found = {name: numbers.get(name, math.nan) for name in sorted(names)}
    return {name: number for name, number in found.items() if math.isfinite(number)}
