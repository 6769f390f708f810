"""The state of a run between two steps."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizers.averaging import AveragingOptimizer, averaged_weights
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.core.controllers import GROUP_REWARD
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.models.aux_heads import head_weights, load_head_weights
from grupo.models.base import AuxModels, Policy
from grupo.rollouts.eval_scores import step_label
from grupo.rollouts.evaluate import EvalResult
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import REPLAY_BUFFER, ReplayBuffer
from grupo.storage.checkpoint import Checkpoint
from grupo.training.collect.async_rollouts import AsyncRolloutQueue
from grupo.training.collect.unfinished_groups import UnfinishedGroup, restored_groups
from grupo.training.resume.step_clock import Clock, MeasuredClock
from grupo.training.stopping import StopInputs
from grupo.util.errors import ConfigError, suggest
from grupo.util.sharded_tensors import sharded_like


class State:
    """The state that changes during a run; a checkpoint holds it, and nothing else is needed.

    Random generators are not part of it: every stream is derived from the seed, a name and the
    step.

    Args:
        policy: The policy that is trained.
        optimizers: Optimizers by the name of their file in a checkpoint.
        aux_models: The reference policy and other auxiliary models.
        tasks: The training tasks.
        history: Earlier groups, as the method reads them.
        replay_buffer: Stored rollouts, if the method replays those of all tasks.
        ema_weights: The moving average of the weights; empty unless the recipe has an `ema`.
        clock: Counts the seconds of steps.
    """

    def __init__(
        self,
        policy: Policy,
        optimizers: Mapping[str, Optimizer],
        aux_models: AuxModels,
        tasks: Sequence[Task],
        *,
        history: History,
        replay_buffer: ReplayBuffer,
        ema_weights: dict[str, Tensor],
        clock: Clock = MeasuredClock(),
    ) -> None:
        self.policy = policy
        self.optimizers = optimizers
        self.aux_models = aux_models
        self.tasks = tasks
        self.rollout_queue = AsyncRolloutQueue()
        self.unfinished_groups: tuple[UnfinishedGroup, ...] = ()  # continued in the next step
        self.history = history
        self.replay_buffer = replay_buffer
        self.ema_weights = ema_weights
        self.clock = clock
        self.step = 0
        self.eval_scores: dict[str, Any] = {}  # by the label of the evaluation
        self.generated_tokens = 0
        self.failed_rollouts = 0
        self.seconds = 0.0  # of steps and evaluations
        self.ledger: dict[str, float] = {}  # sums of the `tokens/`, `time/` and `usage/` metrics
        self.training_seconds = 0.0  # of all steps, without evaluations
        self.sampler_mismatch = math.inf  # last measured, in nats; see docs/metrics.md
        self.kl = math.nan  # of the last step, as `early_stopping.kl_metric` measures it
        self.stop_reason = ""  # of a finished run
        self.finished = False

    def record_collected(
        self, tasks_drawn: int, unfinished_groups: tuple[UnfinishedGroup, ...]
    ) -> None:
        """Record that the groups of a step were collected.

        Args:
            tasks_drawn: Number of tasks drawn in the run.
            unfinished_groups: The groups that the next step continues.
        """
        self.history.tasks_drawn = tasks_drawn
        self.unfinished_groups = unfinished_groups

    def record_step(
        self, groups: Sequence[Group], metrics: Mapping[str, float], method: Method, kl: float
    ) -> None:
        """Record a step.

        Args:
            groups: All groups that the step generated.
            metrics: The metrics of the step.
            method: Its declarations choose the replays and metrics that are kept.
            kl: The KL divergence that `early_stopping.max_kl` limits, in nats per token, or NaN.

        Raises:
            ConfigError: A controller of the method reads a metric that does not exist.
        """
        requires = method.requires
        self.history.append_groups(
            self.step,
            groups,
            requires.replays,
            keep_demonstrations=requires.demonstrations > 0,
        )
        names = method.controlled_metrics
        self.history.append_metrics(_controlled_metrics(metrics, names - {GROUP_REWARD}))
        if GROUP_REWARD in names:
            self.history.append_group_rewards(groups)
        self.aux_models.update_reference(self.step + 1, self.policy)
        self.generated_tokens += int(metrics["tokens/generated"])
        self.failed_rollouts += int(metrics["rollouts/failed"])
        self.seconds += metrics["time/step"]
        self.training_seconds += self.clock.count(self.step + 1, metrics["time/step"])
        self.sampler_mismatch = metrics.get(
            "sampler_mismatch/logp_diff_mean", self.sampler_mismatch
        )
        for name, value in metrics.items():
            if name.startswith(("time/", "tokens/", "usage/")):
                self.ledger[name] = self.ledger.get(name, 0.0) + value
        self.kl = kl
        self.step += 1

    def record_evaluation(
        self, label: str, result: EvalResult, seconds: float, usage: Mapping[str, float]
    ) -> None:
        """Record an evaluation; its tokens and its usage are apart from those of training.

        Args:
            label: Name of the evaluation.
            result: Its scores.
            seconds: Its duration.
            usage: The counts of work that its rewards did elsewhere.
        """
        self.eval_scores[label] = result.to_data()
        self.seconds += seconds
        counts = {"tokens/evaluation": float(result.num_generated_actions)}
        counts |= {f"usage/evaluation/{name}": value for name, value in usage.items()}
        for name, value in counts.items():
            self.ledger[name] = self.ledger.get(name, 0.0) + value

    def stop_inputs(self) -> StopInputs:
        """The numbers that decide whether the run ends."""
        return StopInputs(
            self.step, self.eval_scores, self.generated_tokens, self.training_seconds, self.kl
        )

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """The tensors of a checkpoint, by file.

        `weights` are those that are evaluated and exported. An optimizer that computes gradients
        at other weights has these in its own file.
        """
        optimizers = {name: optimizer_tensors(opt) for name, opt in self.optimizers.items()}
        weights, aux_heads = self._evaluated_weights()
        optional = {
            "aux_heads": aux_heads,
            "reference": self.aux_models.reference_weights,
            "ema": self.ema_weights,
            REPLAY_BUFFER: self.replay_buffer.tensors(),
        }
        return {
            "weights": weights,
            **optimizers,
            "history": self.history.tensors(),
            **{name: tensors for name, tensors in optional.items() if tensors},
        }

    def _evaluated_weights(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """The weights of the policy and of its heads, copied if training uses other ones."""
        optimizers = self.optimizers.values()
        weights, aux_heads = self.policy.weights(), head_weights(self.policy.aux_heads)
        if not any(isinstance(x, AveragingOptimizer) for x in optimizers):
            return weights, aux_heads
        with averaged_weights(*optimizers):
            return _copied(weights), _copied(aux_heads)

    def data(self) -> dict[str, Any]:
        """The plain data of a checkpoint."""
        return {
            "history": self.history.to_data(),
            **{name: entry.value(self) for name, entry in ENTRIES.items()},
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore everything that `tensors` and `data` saved."""
        tensors = checkpoint.tensors
        data = checkpoint.data
        self.policy.load(tensors["weights"])
        load_head_weights(self.policy.aux_heads, tensors.get("aux_heads", {}))
        for name, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, tensors[name])
        self.aux_models.restore(tensors.get("reference", {}))
        for name, average in self.ema_weights.items():
            average.copy_(sharded_like(average, tensors["ema"][name]))
        folds = self.history.task_histories.folds, self.history.source_histories.folds
        self.history = History.from_data(data["history"], tensors["history"], *folds)
        self.replay_buffer.restore(tensors.get(REPLAY_BUFFER, {}))
        self.step = checkpoint.step
        for name, entry in ENTRIES.items():
            entry.restore(self, data[name])
        if checkpoint.notes:  # a finished run saves again, in place of the damaged checkpoint
            self.finished = False

    def finish(self, reason: str) -> None:
        """Record that the run has ended, and why."""
        self.stop_reason = reason
        self.finished = True

    def reopen(self) -> None:
        """Continue a run that was extended: its last evaluation becomes one during training."""
        self.finished = False
        self.stop_reason = ""
        self.eval_scores = {
            step_label(self.step) if label == "after" else label: scores
            for label, scores in self.eval_scores.items()
        }


@dataclass(frozen=True)
class StateEntry:
    """An entry of the plain data of a checkpoint.

    Args:
        value: Returns the entry of a state.
        restore: Puts the entry back into a state.
    """

    value: Callable[[State], Any]
    restore: Callable[[State, Any], None]


def _attributes(*names: str) -> dict[str, StateEntry]:
    """The entries of attributes that are plain data themselves."""
    return {
        name: StateEntry(
            attrgetter(name), lambda state, value, name=name: setattr(state, name, copy(value))
        )
        for name in names
    }


def _restore_microbatch(state: State, tokens: int) -> None:
    state.policy.tokens_per_microbatch = tokens


def _restore_unfinished(state: State, data: Sequence[Any]) -> None:
    state.unfinished_groups = restored_groups(data, state.tasks)


ENTRIES: Mapping[str, StateEntry] = {  # the plain data of a checkpoint beside the history
    **_attributes("eval_scores", "generated_tokens", "failed_rollouts", "seconds"),
    **_attributes("training_seconds", "ledger", "sampler_mismatch"),
    "tokens_per_microbatch": StateEntry(
        lambda state: state.policy.tokens_per_microbatch, _restore_microbatch
    ),
    "rollout_queue": StateEntry(
        lambda state: state.rollout_queue.to_data(),
        lambda state, data: state.rollout_queue.from_data(data, state.tasks),
    ),
    "unfinished_groups": StateEntry(
        lambda state: [group.to_data() for group in state.unfinished_groups], _restore_unfinished
    ),
    **_attributes("kl", "stop_reason", "finished"),
}


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _controlled_metrics(metrics: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The finite ones among the metrics that controllers read.

    Metrics of updates are absent from a step that trained on nothing.
    """
    for name in names:
        if name not in metrics and "loss" in metrics:
            message = f"method: a controller reads the metric {name!r}, which does not exist."
            raise ConfigError(f"{message} {suggest(name, metrics)}")
    values = {name: metrics.get(name, math.nan) for name in sorted(names)}
    return {name: value for name, value in values.items() if math.isfinite(value)}
