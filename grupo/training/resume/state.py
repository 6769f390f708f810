"""The state of a run between two steps."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizers.averaging import AveragingOptimizer, averaged_weights
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.core.controllers import GROUP_REWARD
from grupo.core.task_fold import TaskFold
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.models.aux_heads import head_weights, load_head_weights
from grupo.models.base import AuxModels, Policy
from grupo.recipe import Recipe
from grupo.rollouts.eval_scores import step_label
from grupo.rollouts.evaluate import EvalResult
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import REPLAY_BUFFER, ReplayBuffer
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage.checkpoint import Checkpoint
from grupo.training.collect.async_rollouts import AsyncRolloutQueue
from grupo.training.collect.unfinished_groups import UnfinishedGroup, restored_groups
from grupo.training.stopping import StopInputs, saved_best_steps
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
        task_folds: What the method reads of the earlier groups of a task.
        source_folds: What the method reads of the earlier groups of a source.
    """

    def __init__(
        self,
        policy: Policy,
        optimizers: Mapping[str, Optimizer],
        aux_models: AuxModels,
        tasks: Sequence[Task],
        task_folds: tuple[TaskFold, ...] = (),
        source_folds: tuple[TaskFold, ...] = (),
    ) -> None:
        self.policy = policy
        self.optimizers = optimizers
        self.aux_models = aux_models
        self.tasks = tasks
        self.rollout_queue = AsyncRolloutQueue()
        self.unfinished_groups: tuple[UnfinishedGroup, ...] = ()  # continued in the next step
        self.history = History(
            task_histories=TaskHistoryStore(task_folds),
            source_histories=TaskHistoryStore(source_folds),
        )
        self.replay_buffer = (
            ReplayBuffer()
        )  # of no capacity, unless the method replays rollouts of all tasks
        self.step = 0
        self.eval_scores: dict[str, Any] = {}  # by the label of the evaluation
        self.generated_tokens = 0
        self.failed_rollouts = 0
        self.seconds = 0.0  # of steps and evaluations
        self.ledger: dict[str, float] = {}  # sums of the `tokens/`, `time/` and `usage/` metrics
        self.training_seconds = 0.0  # of all steps, without evaluations
        # the seconds that count for a step, from its number and the measured ones
        self.count_seconds: Callable[[int, float], float] = lambda step, measured: measured
        self.sampler_mismatch = math.inf  # last measured, in nats; see docs/metrics.md
        self.ema_weights: dict[str, Tensor] = {}  # empty unless the recipe has an `ema`
        self.kl = math.nan  # of the last step, as `early_stopping.kl_metric` measures it
        self.stop_reason = ""  # of a finished run
        self.finished = False

    def record_step(
        self, groups: Sequence[Group], metrics: Mapping[str, float], method: Method
    ) -> None:
        """Record a step.

        Args:
            groups: All groups that the step generated.
            metrics: The metrics of the step.
            method: Its declarations choose the replays and metrics that are kept.

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
        self.training_seconds += self.count_seconds(self.step + 1, metrics["time/step"])
        self.sampler_mismatch = metrics.get(
            "sampler_mismatch/logp_diff_mean", self.sampler_mismatch
        )
        for name, value in metrics.items():
            if name.startswith(("time/", "tokens/", "usage/")):
                self.ledger[name] = self.ledger.get(name, 0.0) + value
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
        counts = {"tokens/evaluation": float(result.num_generated)}
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
            "eval_scores": self.eval_scores,
            "generated_tokens": self.generated_tokens,
            "failed_rollouts": self.failed_rollouts,
            "seconds": self.seconds,
            "training_seconds": self.training_seconds,
            "ledger": self.ledger,
            "sampler_mismatch": self.sampler_mismatch,
            "tokens_per_microbatch": self.policy.tokens_per_microbatch,
            "rollout_queue": self.rollout_queue.to_data(),
            "unfinished_groups": [group.to_data() for group in self.unfinished_groups],
            "kl": self.kl,
            "stop_reason": self.stop_reason,
            "finished": self.finished,
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
        self.eval_scores = dict(data["eval_scores"])
        self.generated_tokens = data["generated_tokens"]
        self.failed_rollouts = data["failed_rollouts"]
        self.seconds = data["seconds"]
        self.training_seconds = data["training_seconds"]
        self.ledger = dict(data["ledger"])
        self.sampler_mismatch = data["sampler_mismatch"]
        self.policy.tokens_per_microbatch = data["tokens_per_microbatch"]
        self.rollout_queue.from_data(data["rollout_queue"], self.tasks)
        self.unfinished_groups = restored_groups(data["unfinished_groups"], self.tasks)
        self.kl = data["kl"]
        self.stop_reason = data["stop_reason"]
        self.finished = data["finished"]

    def reopen(self) -> None:
        """Continue a run that was extended: its last evaluation becomes one during training."""
        self.finished = False
        self.stop_reason = ""
        self.eval_scores = {
            step_label(self.step) if label == "after" else label: scores
            for label, scores in self.eval_scores.items()
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


def run_summary(recipe: Recipe, step: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of `summary.json`.

    `tokens` includes the steps that asynchronous rollouts generated ahead and that the run, stopped
    early, never trained on; the ledger has them as `tokens/generated_ahead`.

    Args:
        recipe: The recipe of the run.
        step: The number of steps.
        data: The plain data of the state after them, as a checkpoint holds it.
    """
    ahead = sum(sum(tokens.values()) for _, _, tokens, _ in data["rollout_queue"])
    ledger = data["ledger"] | ({"tokens/generated_ahead": float(ahead)} if ahead else {})
    return {
        "method": repr(recipe.method),
        "model": str(recipe.policy.model),
        "steps": step,
        "stop_reason": data["stop_reason"],
        "best_steps": saved_best_steps(recipe, step, data["eval_scores"]),
        "seconds": round(data["seconds"], 2),
        "tokens": data["generated_tokens"] + ahead,
        "ledger": {name: round(x, 3) for name, x in ledger.items()},
        "failed_rollouts": data["failed_rollouts"],
        "held_out": data["eval_scores"],
    }
