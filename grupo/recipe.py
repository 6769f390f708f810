"""A recipe as data: everything that a run chooses."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval

from grupo.algo.ema import EMA
from grupo.algo.losses.importance_correction import BoundedIS, IntervalMask, TruncatedIS
from grupo.algo.minibatches import SingleUpdate, UpdatePlan, Updates
from grupo.algo.optimizers import Adam, OptimizerSpec
from grupo.core.component import component
from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.limits import STEP_ROLLOUTS, TOKENS
from grupo.core.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from grupo.core.schedules import Schedule
from grupo.core.units import EvaluationsOrNever, RolloutSteps, RolloutStepsOrNever
from grupo.method import Method
from grupo.models.base import AuxModel, PolicySpec
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import FixedGroupSize
from grupo.storage.keep import KeepCheckpoints
from grupo.tasks.base import TaskSource
from grupo.tasks.in_memory import as_task_source
from grupo.tasks.overlong import OverlongHandler, error
from grupo.tasks.split import EvalShare
from grupo.util.errors import ConfigError
from grupo.util.limits import STALENESS, STEPS


@component
class Evaluation:
    """How the policy is evaluated on held-out tasks: one greedy and several sampled attempts.

    A method that trains on demonstrations alone, such as `sft()`, is evaluated on held-out
    demonstrations, too: `eval/nll`, `eval/perplexity` and `eval/token_accuracy`.

    Args:
        attempts: Sampled rollouts per task; 0, with such a method, generates nothing.
        every: Rollout steps between evaluations; 0 evaluates only before and after training.
        success: Decides from the reward whether a rollout solves its task.
        turn_strategy: How the policy answers one observation, as in training.
    """

    attempts: NonNegativeInt = 8
    every: RolloutStepsOrNever = 0
    success: SuccessCriterion = SuccessCriterion()
    turn_strategy: TurnStrategy = single_response


@component
class EarlyStopping:
    """Conditions that end a run before `max_steps`.

    Args:
        min_solve_rate: The last evaluation solved this fraction of sampled attempts; above 1: off.
        max_tokens: The run has generated this number of tokens; 0: no limit.
        max_seconds: The run has trained for this number of seconds; 0: no limit.
        patience: So many evaluations in a row did not improve `metric`; 0: off.
        metric: Evaluation metric for `patience`: `eval/sampled`, `eval/greedy` or `eval/pass@8`;
            `eval/nll` (lower is better) or `eval/token_accuracy` of demonstrations.
        min_delta: Change of the best value so far that counts as an improvement.
        max_kl: Limit of `kl_metric` in a step, in nats per token.
        kl_metric: `policy/kl_ref`, if the loss has a KL term, or `update/kl_old`.
        max_executions: Rewards have executed this number of programs of answers; 0: no limit.
    """

    min_solve_rate: float = 2.0
    max_tokens: Annotated[int, Interval(ge=0, le=TOKENS.maximum)] = 0
    max_seconds: NonNegativeFloat = 0.0
    patience: EvaluationsOrNever = 0
    metric: str = "eval/sampled"
    min_delta: NonNegativeFloat = 0.0
    max_kl: Annotated[float, Gt(0), "inf never ends the run"] = math.inf
    kl_metric: str = "policy/kl_ref"
    max_executions: NonNegativeInt = 0

    def used_fraction(self, tokens: int, seconds: float, executions: float) -> float:
        """The used fraction of the limit of tokens, time or executions, whichever is largest."""
        limits = (
            (tokens, self.max_tokens),
            (seconds, self.max_seconds),
            (executions, self.max_executions),
        )
        return max((used / limit for used, limit in limits if limit), default=0.0)


@component
class Recipe:
    """A training run: policy, environment, tasks, method, and the numbers of the run.

    Args:
        policy: The policy to train, such as `CausalLM("Qwen/Qwen2.5-0.5B")`.
        env: The environment, which scores the rollouts.
        tasks: The source of the training tasks; or a table in memory, a Dataset, a DataFrame or a
            list of dicts, which becomes `InMemoryTasks`.
        eval_tasks: Number of tasks to hold out of `tasks` for evaluation, or another source or
            table; by default a tenth of them, at most 200.
        method: The training method.
        max_steps: Rollout steps; the method's update plan makes one or several updates in each.
        prompts_per_step: Tasks per step; the method's sampler generates a group for each.
        learning_rate: Learning rate, a number or a schedule.
        optimizer: Optimizer of the policy, such as `Adam(weight_decay=0.01)`.
        aux_models: Further models whose signals the method reads, such as a teacher.
        aux_head_learning_rate: Learning rate of auxiliary heads, such as a value head.
        aux_head_optimizer: Optimizer of the auxiliary heads.
        ema: Average of the weights over the updates, kept beside them: `EMA(decay=0.999)`.
        max_grad_norm: Gradients are clipped to this norm; inf clips nothing.
        old_logp_tolerance: Old log-probabilities are the sampler's; they are recomputed if the
            mean mismatch of the previous step exceeded this many nats. Default: what rounding
            explains, 0.001 in float32 and 0.05 in bfloat16.
        max_staleness: Most updates between the weights that generate a token and the update that
            trains on it: generation runs this number of steps ahead. 0 is synchronous.
        stale_correction: Bounds the importance weight w of stale rollouts: the loss of each action
            is multiplied by bound(w), w = pi_old / pi_sampler, where pi_old is the policy before
            the updates of the step. `TruncatedIS(cap)` is IMPALA's weight rho, min(w, cap)
            (Espeholt et al., 2018, arXiv:1802.01561, eq. 1); `BoundedIS(low, high)` bounds w on
            both sides; `IntervalMask(low, high)` is 0 outside; None corrects nothing. It has no
            effect if `max_staleness` is 0, or if the method's loss is a `CorrectedLoss` already,
            as that of `tis`.
        tokens_per_step: Most tokens that a rollout generates within a step. A longer rollout is
            continued in the next step, with the weights of that step. Its group is trained on when
            all its rollouts have ended. 0: no limit. Needs a `max_staleness` above 0.
        evaluation: Evaluation on the held-out tasks.
        early_stopping: Conditions that end the run before `max_steps`.
        overlong: What happens to prompts that leave no room for an answer: `error`, `drop` or
            `truncate`, which shortens the longest message from its beginning.
        on_unscored: What happens after a step of which no rollout could be scored: "stop" ends the
            run with the error, "continue" goes on.
        logged_groups: Groups per step whose tokens are written to the run's folder.
        save_every: Rollout steps between checkpoints.
        keep: Checkpoints that are kept: the newest, and those with the best evaluations.
        seed: Seed of all random streams of the run.
    """

    policy: PolicySpec
    env: EnvSpec
    tasks: TaskSource | Iterable[Any]
    eval_tasks: int | EvalShare | TaskSource | Iterable[Any] = EvalShare()
    method: Method = Method()
    max_steps: Annotated[int, Interval(ge=1, le=STEPS.maximum)] = 100
    prompts_per_step: PositiveInt = 16
    learning_rate: float | Schedule = 1e-5
    optimizer: OptimizerSpec = Adam()
    aux_models: tuple[AuxModel, ...] = ()
    aux_head_learning_rate: float | Schedule = 1e-3
    aux_head_optimizer: OptimizerSpec = Adam()
    ema: EMA | None = None
    max_grad_norm: Annotated[float, Gt(0), "inf clips nothing"] = 1.0
    old_logp_tolerance: Annotated[float, Ge(0), "inf never recomputes log-probabilities"] | None = (
        None
    )
    max_staleness: Annotated[int, Interval(ge=0, le=STALENESS.maximum)] = 0
    stale_correction: TruncatedIS | BoundedIS | IntervalMask | None = TruncatedIS(2.0)
    tokens_per_step: NonNegativeInt = 0
    evaluation: Evaluation = Evaluation()
    early_stopping: EarlyStopping = EarlyStopping()
    overlong: OverlongHandler = error
    on_unscored: Literal["stop", "continue"] = "stop"
    logged_groups: NonNegativeInt = 32
    save_every: RolloutSteps = 10
    keep: KeepCheckpoints = KeepCheckpoints()
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", as_task_source(self.tasks))
        if not isinstance(self.eval_tasks, int | EvalShare):
            object.__setattr__(self, "eval_tasks", as_task_source(self.eval_tasks, "eval_tasks"))
        if self.prompts_per_step * self.group_size > STEP_ROLLOUTS.maximum:
            raise ConfigError(
                f"prompts_per_step: {self.prompts_per_step} prompts x {self.group_size} rollouts ="
                f" {self.prompts_per_step * self.group_size:,}. Allowed: {STEP_ROLLOUTS.allowed}."
            )

    def replace(self, **changes: Any) -> "Recipe":
        """The same recipe with some fields changed."""
        return replace(self, **changes)

    def progress(self, step: int, tokens: int, seconds: float, executions: float = 0.0) -> float:
        """Progress of the run, 0 to 1, in the middle of `step`; schedules are functions of it.

        Args:
            step: Steps completed.
            tokens: Tokens generated so far.
            seconds: Seconds of training so far.
            executions: Programs of answers that rewards have executed so far.
        """
        used = self.early_stopping.used_fraction(tokens, seconds, executions)
        return max((step + 0.5) / self.max_steps, used)

    @property
    def group_size(self) -> int:
        """Rollouts per group; 0 if the sampler does not fix it in advance."""
        sampler = self.method.sampler
        return sampler.group_size if isinstance(sampler, FixedGroupSize) else 0

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates per step; 0 if the update plan does not fix it in advance."""
        return updates_per_step(self.method.updates)

    def describe_step(self) -> str:
        """Rollouts and updates of a step, in words."""
        prompts = f"{self.prompts_per_step} prompts"
        if self.group_size:
            total = self.prompts_per_step * self.group_size
            rollouts = f"{prompts} x {self.group_size} rollouts = {total} rollouts per step"
        else:
            rollouts = f"{prompts} per step, each sampled by {self.method.sampler!r}"
        steps = _count(self.max_steps, "step")
        if not self.updates_per_step:
            return f"{rollouts}; updates by {self.method.updates!r}; {steps}"
        updates = _count(self.updates_per_step, "update")
        all_updates = _count(self.max_steps * self.updates_per_step, "update")
        return f"{rollouts}; {updates} per step; {steps} = {all_updates}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def updates_per_step(plan: UpdatePlan) -> int:
    """Optimizer updates per step of an update plan; 0 if it does not fix them in advance.

    >>> updates_per_step(Updates(epochs=2, minibatches=4))
    8
    """
    match plan:
        case SingleUpdate():
            return 1
        case Updates(epochs, minibatches):
            return epochs * minibatches
    return 0


def with_max_minibatches(plan: UpdatePlan, groups: int) -> UpdatePlan:
    """The plan with at most one minibatch for each group of a step; plans of users are unchanged.

    >>> with_max_minibatches(Updates(2, 16), groups=8), with_max_minibatches(SingleUpdate(), 8)
    (Updates(epochs=2, minibatches=8), SingleUpdate())
    """
    if isinstance(plan, Updates) and plan.minibatches > groups:
        return replace(plan, minibatches=groups)
    return plan
