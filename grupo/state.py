"""What a run is at the end of a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.history import History
from grupo.optimize import restore, state_of
from grupo.policies.causal_lm import CausalPolicy
from grupo.rollout import Group
from grupo.storage.checkpoint import Checkpoint


class State:
    """All that changes while a run goes: a checkpoint holds this, and a run needs no more.

    Random numbers are not among it: every stream is derived from the seed, a name and the step.
    """

    def __init__(self, policy: CausalPolicy, optimizer: torch.optim.Optimizer) -> None:
        self.policy, self.optimizer = policy, optimizer
        self.history, self.step = History(), 0
        self.scores: dict[str, Any] = {}  # of the held-out tasks, by when they were attempted
        self.tokens, self.failed, self.seconds = 0, 0, 0.0
        self.finished = False

    def record(self, groups: Sequence[Group], numbers: Mapping[str, float]) -> None:
        """Note a step: what was sampled, and what it cost."""
        self.history.record(self.step, groups)
        self.tokens += int(numbers["tokens/sampled"])
        self.failed += int(numbers["rollouts/failed"])
        self.seconds += numbers["time/step"]
        self.step += 1

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """What is saved bit for bit."""
        return {"weights": self.policy.weights(), "optimizer": state_of(self.optimizer)}

    def data(self) -> dict[str, Any]:
        """What is saved as plain data."""
        return {
            "history": self.history.to_data(),
            "scores": self.scores,
            "tokens": self.tokens,
            "failed": self.failed,
            "seconds": self.seconds,
            "finished": self.finished,
        }

    def restore(self, found: Checkpoint) -> None:
        """Become what was saved."""
        self.policy.load(found.tensors["weights"])
        restore(self.optimizer, found.tensors["optimizer"])
        self.history, self.step = History.from_data(found.data["history"]), found.step
        self.scores = dict(found.data["scores"])
        self.tokens, self.failed = found.data["tokens"], found.data["failed"]
        self.seconds, self.finished = found.data["seconds"], found.data["finished"]
