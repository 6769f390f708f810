"""The batch of a step: groups laid out as tensors, with signals and advantages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from grupo.core.batch import EMPTY_BATCH, Batch, TaskHistory
from grupo.core.dtypes import logp_rounding
from grupo.core.types import Task
from grupo.distributed.base import Ranks
from grupo.method import Method
from grupo.models.base import AuxModels, Policy
from grupo.recipe import Recipe
from grupo.storage.fault_injection import kill_point
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.update.collate import collate
from grupo.training.update.signals import add_signals, signals_of_all_rows


@dataclass(frozen=True)
class BatchBuilder:
    """Builds the batches of one step.

    Args:
        method: The resolved method of the step: without schedules and controllers.
        policy: The policy before the update.
        aux_models: The reference policy and other auxiliary models.
        statistics_of_task: Returns, for a task, the states of the method's statistics.
        recomputes_old_logp: True if the trainer computes the old log-probs; False if those of the
            inference engine are used.
        ranks: The processes that share the rows.
        run_forward_passes: Calls the given function, which runs forward passes. If memory runs out,
            the micro-batch of `policy` is halved, and the function is called again.
    """

    method: Method
    policy: Policy
    aux_models: AuxModels
    statistics_of_task: Callable[[Task], TaskHistory]
    recomputes_old_logp: bool
    ranks: Ranks
    run_forward_passes: Callable[[Callable[[], Batch]], Batch]

    def __call__(self, collected: CollectedGroups) -> Batch:
        """The batch of the kept groups, with advantages and the signals that the method reads."""
        if not collected.kept_groups:
            return EMPTY_BATCH
        batch = self.collate(collected)
        kill_point("step/collated")
        batch = self.run_forward_passes(partial(self._with_old_logp_and_signals, batch))
        kill_point("step/logprobs_computed")
        batch = batch.with_advantage(self.method.advantage)
        kill_point("step/advantages_computed")
        return batch

    def collate(self, collected: CollectedGroups) -> Batch:
        """The batch of the kept groups, without the signals that need a forward pass."""
        batch = collate(collected.kept_groups, self.policy.encode, self.statistics_of_task)
        # an auxiliary model may evaluate the responses after a prompt of its own
        aux_inputs = self.aux_models.encode_own_prompts(self.policy, collected.kept_groups)
        rollout_of_row = batch.rollout  # (N,): the number of each row's rollout
        row_inputs = {
            "row": torch.arange(len(rollout_of_row)),  # number of the row in the whole batch
            "rank": collected.rank_of_rows(rollout_of_row),  # the rank that generated the row
        }
        return replace(batch, inputs={**batch.inputs, **aux_inputs, **row_inputs})

    def add_method_signals(self, batch: Batch) -> Batch:
        """Return the batch with the signals that the method reads.

        For rows of the replay buffer: unlike `__call__`, this keeps their stored old log-probs.
        """
        return self.run_forward_passes(partial(self._with_method_signals, batch))

    def _with_old_logp_and_signals(self, batch: Batch) -> Batch:
        if self.recomputes_old_logp:
            batch = replace(batch, old_logp=self._recomputed_old_logp(batch))
        return self._with_method_signals(batch)

    def _with_method_signals(self, batch: Batch) -> Batch:
        models = self.aux_models.signal_models
        return add_signals(self.policy, models, batch, self.method.requires.signals, self.ranks)

    def _recomputed_old_logp(self, batch: Batch) -> Tensor:
        """The old log-probs, recomputed for actions that have one in their own context.

        An action has a log-prob if it was sampled, or if it is text that a sampler forced and that
        is trained on: then its `old_logp` is not 0. An action of a demonstration has none, so that
        its `old_logp` is 0. The log-probs of actions that were sampled in another context than they
        are trained in are kept. `collate` sets "sampled" and "off_context" to 0 or 1.
        """
        has_logp = (batch.signals["sampled"] > 0) | (batch.old_logp != 0)
        is_in_context = has_logp & (batch.signals["off_context"] == 0)
        if not is_in_context.any():
            return batch.old_logp  # demonstrations need no forward pass
        signals = signals_of_all_rows(
            self.policy, signal_model=self.policy, batch=batch, names=["logp"], ranks=self.ranks
        )
        return torch.where(is_in_context, signals["logp"], batch.old_logp)


def must_recompute_old_logp(recipe: Recipe, sampler_logp_diff: float) -> bool:
    """Whether the trainer must compute the old log-probs; if not, the engine's are used.

    Args:
        recipe: The recipe of the run, with `old_logp_tolerance` and `max_staleness`.
        sampler_logp_diff: Mean absolute difference between the log-probs of the trainer and of the
            inference engine that sampled, as it was measured last, in nats; may be NaN.
    """
    tolerance = recipe.old_logp_tolerance
    if tolerance is None:
        tolerance = logp_rounding(recipe.policy)
    is_tolerable = sampler_logp_diff <= tolerance  # False for NaN
    # with `max_staleness`, the engine's log-probs may be those of older weights
    return bool(recipe.max_staleness) or not is_tolerable
