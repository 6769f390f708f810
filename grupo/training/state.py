"""What a run is at the end of a step."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizer import optimizer_tensors, restore_optimizer
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.models.aux_models import AuxModels
from grupo.models.base import Policy
from grupo.rollouts.history import History
from grupo.storage.checkpoint import Checkpoint
from grupo.training.async_rollouts import AsyncRolloutQueue


class State:
    """All that changes while a run goes: a checkpoint holds this, and a run needs no more.

    Random numbers are not among it: every stream is derived from the seed, a name and the step.
    """

    def __init__(
        self,
        policy: Policy,
        optimizers: Mapping[str, Optimizer],
        company: AuxModels,
        tasks: Sequence[Task],
    ) -> None:
        self.policy, self.optimizers, self.aux_models = policy, optimizers, company
        self.tasks, self.rollout_queue = tasks, AsyncRolloutQueue()
        self.history, self.step = History(), 0
        self.eval_scores: dict[str, Any] = {}  # of the held-out tasks, by when they were attempted
        self.generated_tokens, self.failed_rollouts, self.seconds = 0, 0, 0.0
        self.ledger: dict[str, float] = {}  # tokens and seconds of all steps, by what they were for
        self.sampler_mismatch = math.inf  # of sampler and trainer, when it was last measured
        self.finished = False

    def record_step(
        self, groups: Sequence[Group], metrics: Mapping[str, float], method: Method
    ) -> None:
        """Note a step: what was sampled, what it cost, and what the method wants remembered."""
        self.history.append_groups(
            self.step, groups, method.required_reward_history, method.num_replays
        )
        self.history.append_metrics(_controlled_metrics(metrics, method.controlled_metrics))
        self.aux_models.update_reference(self.step + 1, self.policy)
        self.generated_tokens += int(metrics["tokens/generated"])
        self.failed_rollouts += int(metrics["rollouts/failed"])
        self.seconds += metrics["time/step"]
        self.sampler_mismatch = metrics.get(
            "sampler_mismatch/logp_diff_mean", self.sampler_mismatch
        )
        for name in (n for n in metrics if n.startswith(("time/", "tokens/"))):
            self.ledger[name] = self.ledger.get(name, 0.0) + metrics[name]
        self.step += 1

    @property
    def training_seconds(self) -> float:
        """Seconds of all steps, evaluations not counted."""
        return self.ledger.get("time/step", 0.0)

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """What is saved bit for bit."""
        optimizers = {name: optimizer_tensors(one) for name, one in self.optimizers.items()}
        beside = {
            "helpers": self.policy.aux_heads.state_dict(),
            "reference": self.aux_models.reference_weights,
        }
        used = {name: tensors for name, tensors in beside.items() if tensors}
        history = self.history.tensors()
        return {"weights": self.policy.weights(), **optimizers, "history": history, **used}

    def data(self) -> dict[str, Any]:
        """What is saved as plain data."""
        return {
            "history": self.history.to_data(),
            "scores": self.eval_scores,
            "tokens": self.generated_tokens,
            "failed": self.failed_rollouts,
            "seconds": self.seconds,
            "ledger": self.ledger,
            "mismatch": self.sampler_mismatch,
            "budget": self.policy.tokens_per_microbatch,
            "ahead": self.rollout_queue.to_data(),
            "finished": self.finished,
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Become what was saved."""
        self.policy.load(checkpoint.tensors["weights"])
        for name, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, checkpoint.tensors[name])
        self.policy.aux_heads.load_state_dict(dict(checkpoint.tensors.get("helpers", {})))
        self.aux_models.restore(checkpoint.tensors.get("reference", {}))
        self.history = History.from_data(checkpoint.data["history"], checkpoint.tensors["history"])
        self.step = checkpoint.step
        self.eval_scores = dict(checkpoint.data["scores"])
        self.generated_tokens, self.failed_rollouts = (
            checkpoint.data["tokens"],
            checkpoint.data["failed"],
        )
        self.seconds, self.finished = checkpoint.data["seconds"], checkpoint.data["finished"]
        self.ledger, self.sampler_mismatch = (
            dict(checkpoint.data["ledger"]),
            checkpoint.data["mismatch"],
        )
        self.policy.tokens_per_microbatch = checkpoint.data["budget"]
        self.rollout_queue.from_data(checkpoint.data["ahead"], self.tasks)


def _controlled_metrics(numbers: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The numbers that controllers follow; a step that updated nothing has none of some."""
    for name in names:
        if name not in numbers and "loss" in numbers:
            said = f"method: a controller follows {name!r}, and no metric is called so."
            raise ConfigError(f"{said} {suggest(name, numbers)}")
    found = {name: numbers.get(name, math.nan) for name in sorted(names)}
    return {name: number for name, number in found.items() if math.isfinite(number)}
