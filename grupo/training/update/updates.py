"""The updates of a step: gradients of each minibatch, summed over ranks, and optimizer steps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor
from torch.optim import Optimizer

from grupo.algo.optimizers.averaging import optimizer_parameters
from grupo.algo.optimizers.update import optimizer_step
from grupo.core.batch import Batch
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import collect_json, sum_gradients
from grupo.distributed.phase import Phase
from grupo.method import Method
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.storage.fault_injection import kill_point
from grupo.training.update.finite_weights import check_finite_weights
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.metrics import advantage_metrics, combine_update_metrics
from grupo.training.update.records import ActionSignals
from grupo.util.rng import make_rng
from grupo.util.timing import Stopwatch

Metrics = dict[str, float]


@dataclass(frozen=True)
class Updater:
    """Runs the updates of a step.

    Args:
        recipe: The recipe of the run.
        policy: The policy that is trained.
        optimizers: Optimizers of the policy and of its heads, by name.
        ema_weights: The moving average of the weights, changed in place if the recipe has an `ema`.
        ranks: The processes that train together.
        stopwatch: Times the updates.
        retry_on_oom: Runs a function, and again with smaller micro-batches if memory runs out.
    """

    recipe: Recipe
    policy: Policy
    optimizers: Mapping[str, Optimizer]
    ema_weights: dict[str, Tensor]
    ranks: Ranks
    stopwatch: Stopwatch
    retry_on_oom: Callable[[Callable[[], Metrics]], Metrics]

    def __call__(
        self,
        method: Method,
        batch: Batch,
        *,
        learning_rates: Mapping[str, float],
        step: int,
        action_signals: ActionSignals,
    ) -> Metrics:
        """Train on a batch, and return the metrics of its updates.

        Args:
            method: The resolved method of the step: numbers are in the place of the schedules and
                controllers of `recipe.method`.
            batch: The batch of the step, with advantages.
            learning_rates: The learning rate of each optimizer, by name.
            step: Index of the step, from 0.
            action_signals: This call adds the policy's signals of each row, by row number. Rank 0
                receives the rows of all ranks, another rank only its own. A row that is skipped in
                the update, such as one with advantage 0, is missing.
        """
        rng = make_rng(self.recipe.seed, "plan", step)  # for the order of the minibatches
        update_metrics = [
            self._update(method, minibatch, learning_rates, action_signals)
            for minibatch in method.updates(batch, rng)
        ]
        for signals_of_rank in collect_json(self.ranks, action_signals, Phase.UPDATED):
            # JSON turned the row numbers into strings
            action_signals.update({int(row): signals for row, signals in signals_of_rank.items()})
        return advantage_metrics(method, batch) | combine_update_metrics(update_metrics)

    def _update(
        self,
        method: Method,
        minibatch: Batch,
        learning_rates: Mapping[str, float],
        action_signals: ActionSignals,
    ) -> Metrics:
        """Train on a minibatch, and return the metrics of the update."""
        with self.stopwatch.lap("update"):
            update_metrics = self.retry_on_oom(
                partial(
                    accumulate_gradients,
                    self.policy,
                    method,
                    minibatch,
                    action_signals,
                    # Rows without gradient are skipped to save time, but not if there is a
                    # controller: its metric may be a mean over all rows. Only `recipe.method` has
                    # the controllers; in `method`, numbers have replaced them.
                    include_rows_without_gradient=bool(self.recipe.method.controller_metric_names),
                    ranks=self.ranks,
                )
            )
            for optimizer in self.optimizers.values():
                sum_gradients(self.ranks, optimizer_parameters(optimizer), Phase.GRADIENTS_SUMMED)
        kill_point("step/accumulated")
        with self.stopwatch.lap("update"):
            for name, optimizer in self.optimizers.items():
                lr = learning_rates[name]
                optimizer_metrics = optimizer_step(optimizer, lr, self.recipe.max_grad_norm)
                # of metrics with one name the earlier stays; the policy's optimizer is the first
                update_metrics = optimizer_metrics | update_metrics
            parameters = [p for o in self.optimizers.values() for p in optimizer_parameters(o)]
            check_finite_weights(parameters, learning_rates, self.ranks)
            self.policy.update_unsharded_copy()
        kill_point("step/updated")
        if self.recipe.ema:
            self.recipe.ema.update(self.ema_weights, self.policy.weights())
            kill_point("step/ema_updated")
        return update_metrics
