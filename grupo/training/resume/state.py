"""The state of a run between two steps; `saved_state` writes it to checkpoints."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from grupo.core.controllers import GROUP_REWARD_METRIC, controller_values
from grupo.core.elites import archive_metrics
from grupo.core.types import Group, Task
from grupo.method import Method
from grupo.models.aux_heads import head_parameters
from grupo.models.base import AuxModels, Policy
from grupo.recipe import Recipe
from grupo.rollouts.eval_result import EvalResult
from grupo.rollouts.eval_scores import step_label
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import ReplayBuffer
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage.segments import Segments
from grupo.training.collect.async_rollouts import AsyncRolloutQueue
from grupo.training.collect.unfinished_groups import GroupInProgress
from grupo.training.resume.step_durations import StepDurations, UnrecordedDurations
from grupo.training.stopping import EXECUTIONS_METRIC, StopInputs

# the name of each optimizer is also the name of its file in a checkpoint
POLICY_OPTIMIZER = "optimizer"
AUX_HEAD_OPTIMIZER = "aux_head_optimizer"


class State:
    """The state that changes during a run; a checkpoint holds the complete state.

    The state has no random generators, because every random stream is derived from the seed, a name
    and the step.

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
        # repeated step once. `total_seconds`, for the summary, counts the second execution, whose
        # results the run keeps; it also has the evaluations. `training_seconds` counts the first
        # execution, because schedules and the end of the run, which read it, stay as they were.
        self.total_seconds = 0.0
        self.training_seconds = 0.0
        # sums over the run of the `tokens/`, `time/` and `usage/` metrics, by name
        self.metric_totals: dict[str, float] = {}
        # last mean |logp of the trainer - logp of the engine that sampled|, in nats
        self.sampler_logp_diff = math.inf
        # `early_stopping.kl_metric` of the last step, in nats per token
        self.early_stopping_kl = math.nan
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
        self,
        groups: Sequence[Group],
        metrics: Mapping[str, float],
        method: Method,
        early_stopping_kl: float,
    ) -> None:
        """Record a step, and update the reference policy if that is due.

        Args:
            groups: All groups that the step generated.
            metrics: The metrics of the step.
            method: Its components declare the rollouts and the metrics that the history keeps.
            early_stopping_kl: The KL divergence that `early_stopping.max_kl` limits, in nats per
                token, or NaN.

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
        self.early_stopping_kl = early_stopping_kl

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
            self.step,
            self.eval_scores,
            self.generated_tokens,
            self.training_seconds,
            self.early_stopping_kl,
            self.executions,
        )

    def archive_metrics(self, method: Method) -> dict[str, float]:
        """Coverage, QD score and best reward of the archives that the method's rules keep."""
        replays = self.history.replay_rollouts.values()
        return archive_metrics(method.requires.replay_rules, replays)

    @property
    def executions(self) -> float:
        """Number of programs of answers that rewards have executed in training."""
        return self.metric_totals.get(EXECUTIONS_METRIC, 0.0)

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


def initial_state(
    recipe: Recipe,
    policy: Policy,
    tasks: Sequence[Task],
    segments: Segments,
    step_durations: StepDurations,
) -> State:
    """Attach the auxiliary heads and models to the policy, and return the run's first state.

    The method declares what the state needs: heads, models, statistics and a replay buffer.

    Args:
        recipe: The recipe of the run.
        policy: The policy that is trained.
        tasks: The training tasks.
        segments: The storage for the rollouts of the replay buffer.
        step_durations: The seconds of each step.
    """
    method, requires = recipe.method, recipe.method.requires
    heads = policy.attach_heads(requires.heads)
    aux_models = policy.attach_aux_models(requires.all_signals, method.reference, recipe.aux_models)
    optimizers = {POLICY_OPTIMIZER: recipe.optimizer(policy.parameters(), policy.embeddings())}
    if requires.heads:
        optimizers[AUX_HEAD_OPTIMIZER] = recipe.aux_head_optimizer(head_parameters(heads))
    return State(
        policy,
        optimizers,
        aux_models,
        tasks,
        history=History(
            statistics_by_task=StatisticStore(requires.task_statistics),
            statistics_by_source=StatisticStore(requires.source_statistics),
        ),
        replay_buffer=ReplayBuffer(capacity=requires.replay_buffer, segments=segments),
        ema_weights=recipe.ema.initial(policy.weights()) if recipe.ema else {},
        step_durations=step_durations,
    )
