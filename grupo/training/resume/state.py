"""The state of a run between two steps."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizers.averaging import AveragingOptimizer, use_averaged_weights
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.core.controllers import GROUP_REWARD_METRIC, controller_values
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
from grupo.training.collect.unfinished_groups import GroupInProgress, restore_groups
from grupo.training.resume.step_durations import StepDurations, UnrecordedDurations
from grupo.training.stopping import StopInputs
from grupo.util.sharded_tensors import sharded_like


class State:
    """The state that changes during a run; a checkpoint holds the complete state.

    `tensors` returns the part of the state that a checkpoint stores as tensors. `data` returns the
    other part, whose fields `DATA_FIELDS` lists. The state has no random generators, because every
    random stream is derived from the seed, a name and the step.

    Args:
        policy: The policy that is trained.
        optimizers: Optimizers by the name of their file in a checkpoint.
        aux_models: The reference policy and other auxiliary models.
        tasks: The training tasks.
        history: The record of earlier groups that the method reads.
        replay_buffer: Rollouts of earlier steps, from which `Method.replay` chooses.
        ema_weights: The moving average of the weights; empty unless the recipe has an `ema`.
        step_durations: The seconds of each step. If a step is repeated after a resume, the time of
            its first execution counts.
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
        step_durations: StepDurations = UnrecordedDurations(),
    ) -> None:
        self.policy = policy
        self.optimizers = optimizers
        self.aux_models = aux_models
        self.tasks = tasks
        self.rollout_queue = AsyncRolloutQueue()
        self.unfinished_groups: tuple[GroupInProgress, ...] = ()  # the next step continues them
        self.history = history
        self.replay_buffer = replay_buffer
        self.ema_weights = ema_weights
        self.step_durations = step_durations
        self.step = 0  # number of steps done, which is also the index of the next step, from 0
        self.eval_scores: dict[str, Any] = {}  # by the label of the evaluation
        self.generated_tokens = 0
        self.failed_rollouts = 0
        # A resumed run repeats the steps after its checkpoint. Each of the two durations counts a
        # repeated step once. `total_seconds` is for the summary. It sums the steps and evaluations
        # whose results the run keeps, hence the repetition. `training_seconds` sums the steps
        # alone. It decides about schedules and the end of the run, which a resume must not change,
        # hence the first execution counts.
        self.total_seconds = 0.0
        self.training_seconds = 0.0
        # sums over the run of the `tokens/`, `time/` and `usage/` metrics, by name
        self.metric_totals: dict[str, float] = {}
        self.sampler_logp_diff = math.inf  # last mean |trainer's logp - sampler's logp|, in nats
        self.kl = math.nan  # `early_stopping.kl_metric` of the last step, in nats per token
        self.stop_reason = ""  # "" until the run has finished
        self.finished = False

    def record_collected(
        self, num_tasks_drawn: int, unfinished_groups: tuple[GroupInProgress, ...]
    ) -> None:
        """Record that the groups of a step were collected.

        Args:
            num_tasks_drawn: Number of tasks drawn in the run, up to and including this step.
            unfinished_groups: The groups that the next step continues.
        """
        self.history.num_tasks_drawn = num_tasks_drawn
        self.unfinished_groups = unfinished_groups

    def record_step(
        self, groups: Sequence[Group], metrics: Mapping[str, float], method: Method, kl: float
    ) -> None:
        """Record a step.

        Args:
            groups: All groups that the step generated.
            metrics: The metrics of the step.
            method: Its components declare the rollouts and the metrics that the history keeps.
            kl: The KL divergence that `early_stopping.max_kl` limits, in nats per token, or NaN.

        Raises:
            ConfigError: A controller of the method reads a metric that does not exist.
        """
        requires = method.requires
        self.history.append_groups(
            self.step,
            groups,
            replay_rules=requires.replay_rules,
            keep_demonstrations=requires.demonstrations > 0,
        )
        names = method.controller_metric_names
        values = controller_values(metrics, names - {GROUP_REWARD_METRIC})
        self.history.append_metrics(values)
        if GROUP_REWARD_METRIC in names:  # it has a value for each group, not for each step
            self.history.append_group_rewards(groups)
        self.step += 1
        self.aux_models.update_reference(self.step, self.policy)
        self.generated_tokens += int(metrics["tokens/generated"])
        self.failed_rollouts += int(metrics["rollouts/failed"])
        step_seconds = metrics["time/step"]
        self.total_seconds += step_seconds
        durations = self.step_durations
        self.training_seconds += durations.duration_of_first_execution(self.step, step_seconds)
        self.sampler_logp_diff = metrics.get(
            "sampler_mismatch/logp_diff_mean", self.sampler_logp_diff
        )
        for name, value in metrics.items():
            if name.startswith(("time/", "tokens/", "usage/")):
                self.metric_totals[name] = self.metric_totals.get(name, 0.0) + value
        self.kl = kl

    def record_evaluation(
        self, label: str, result: EvalResult, seconds: float, external_usage: Mapping[str, float]
    ) -> None:
        """Record an evaluation.

        Tokens and external usage of evaluations are summed separately from those of training.

        Args:
            label: Name of the evaluation: "before", "step N" or "after".
            result: The scores of the evaluation.
            seconds: The duration of the evaluation.
            external_usage: Usage that reward functions report, such as judge tokens, by name.
        """
        self.eval_scores[label] = result.to_data()
        self.total_seconds += seconds
        counts = {"tokens/evaluation": float(result.num_generated_actions)}
        counts |= {f"usage/evaluation/{name}": value for name, value in external_usage.items()}
        for name, value in counts.items():
            self.metric_totals[name] = self.metric_totals.get(name, 0.0) + value

    def stop_inputs(self) -> StopInputs:
        """Return the numbers that decide whether the run ends."""
        return StopInputs(
            self.step, self.eval_scores, self.generated_tokens, self.training_seconds, self.kl
        )

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """Return the tensors of a checkpoint: for each file, a mapping of tensors by name.

        The file `weights` holds the weights that are evaluated and exported. An averaging optimizer
        computes gradients at other weights, which the optimizer's file holds.
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
        """Return the weights of the policy and of its heads that are evaluated and exported.

        With an `AveragingOptimizer`, the evaluated weights are averages. The parameters hold the
        averages only within the `with` block. This method therefore returns copies.
        """
        optimizers = self.optimizers.values()
        weights, aux_heads = self.policy.weights(), head_weights(self.policy.aux_heads)
        if not any(isinstance(x, AveragingOptimizer) for x in optimizers):
            return weights, aux_heads
        with use_averaged_weights(*optimizers):
            return _clone_all(weights), _clone_all(aux_heads)

    def data(self) -> dict[str, Any]:
        """Return the plain data of a checkpoint: JSON data, in which inf and NaN may occur.

        Some of the values are objects of the state: store or copy them before the state changes.
        """
        return {
            "history": self.history.to_data(),
            **{name: field.read(self) for name, field in DATA_FIELDS.items()},
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the tensors and the plain data of a checkpoint."""
        tensors = checkpoint.tensors
        data = checkpoint.data
        self.policy.load(tensors["weights"])
        load_head_weights(self.policy.aux_heads, tensors.get("aux_heads", {}))
        for name, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, tensors[name])
        self.aux_models.restore(tensors.get("reference", {}))
        for name, average in self.ema_weights.items():
            average.copy_(sharded_like(average, tensors["ema"][name]))
        self.history = History.from_data(
            data["history"],
            tensors["history"],
            # the components; a checkpoint holds only their states
            self.history.statistics_by_task.statistics,
            self.history.statistics_by_source.statistics,
        )
        self.replay_buffer.restore(tensors.get(REPLAY_BUFFER, {}))
        self.step = checkpoint.step
        for name, field in DATA_FIELDS.items():
            field.write(self, data[name])
        if checkpoint.skipped_checkpoints:
            # a newer checkpoint was damaged: the run trains again from this one
            self.finished, self.stop_reason = False, ""

    def finish(self, reason: str) -> None:
        """Record that the run has ended, and the reason."""
        self.stop_reason = reason
        self.finished = True

    def begin_extension(self) -> None:
        """Record that the run was extended: it is no longer finished.

        If there was a final evaluation, its label "after" becomes that of an evaluation during
        training, "step N".
        """
        self.finished = False
        self.stop_reason = ""
        self.eval_scores = {
            step_label(self.step) if label == "after" else label: scores
            for label, scores in self.eval_scores.items()
        }


@dataclass(frozen=True)
class DataField:
    """A field of the plain data of a checkpoint.

    Args:
        read: Returns the value of the field in a state, which may be an object of the state.
        write: Sets the field of a state. Later changes of the state leave the given value as it is.
    """

    read: Callable[[State], Any]
    write: Callable[[State, Any], None]


def _attributes(*names: str) -> dict[str, DataField]:
    """Return a `DataField` for each named attribute of the state; its value is JSON data."""
    # `write` copies the value, because the state changes its mappings in place
    return {
        name: DataField(
            attrgetter(name), lambda state, value, name=name: setattr(state, name, copy(value))
        )
        for name in names
    }


def _write_tokens_per_microbatch(state: State, tokens: int) -> None:
    state.policy.tokens_per_microbatch = tokens


def _write_unfinished_groups(state: State, data: Sequence[Any]) -> None:
    state.unfinished_groups = restore_groups(data, state.tasks)


# all plain data of a checkpoint except the history
DATA_FIELDS: Mapping[str, DataField] = {
    **_attributes("eval_scores", "generated_tokens", "failed_rollouts", "total_seconds"),
    **_attributes("training_seconds", "metric_totals", "sampler_logp_diff"),
    "tokens_per_microbatch": DataField(
        lambda state: state.policy.tokens_per_microbatch, _write_tokens_per_microbatch
    ),
    "rollout_queue": DataField(
        lambda state: state.rollout_queue.to_data(),
        lambda state, data: state.rollout_queue.restore(data, state.tasks),
    ),
    "unfinished_groups": DataField(
        lambda state: [group.to_data() for group in state.unfinished_groups],
        _write_unfinished_groups,
    ),
    **_attributes("kl", "stop_reason", "finished"),
}


def _clone_all(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}
