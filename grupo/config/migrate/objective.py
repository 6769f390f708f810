"""The method that the options of a file are translated into, slot by slot."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator, Center, OverlongPenalty, ScaleByStd, chain
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.filters import keep_all, keep_nonzero_std
from grupo.algo.losses import Clip, EntropyBonus, Loss, ZeroLoss
from grupo.algo.minibatches import SingleUpdate, UpdatePlan, Updates
from grupo.algo.ratios import CappedRatio, token
from grupo.config.migrate.settings import OptionValues
from grupo.config.recipe_files import method_to_data
from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.curricula import Curriculum, DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler, Sampler

Ratio = Callable[[Signals, Batch], Tensor]


@dataclass
class Objective:
    """The choices of a method, each of them a component.

    Args:
        sampler: Generates the rollouts of a task.
        policy_loss: The loss that reads the advantage, without KL and entropy.
        kl: The KL term with its weight.
        entropy_coef: Weight of the entropy bonus.
        advantage: Estimators that are applied in turn.
        aggregation: Weight of each action, that of all terms of the loss.
        epochs: Passes over a step's batch.
        minibatches: Updates per pass.
        dynamic_sampling: Rounds of dynamic sampling; 0: none.
        overlong: Limit and buffer of the overlong penalty; empty: none.
        reference: Moves the reference policy.
    """

    sampler: Sampler = GroupSampler(8)
    policy_loss: Loss = Clip()
    kl: Loss = ZeroLoss()
    entropy_coef: float = 0.0
    advantage: tuple[AdvantageEstimator, ...] = (Center(), ScaleByStd())
    aggregation: Aggregation = sequence_mean
    epochs: int = 1
    minibatches: int = 1
    dynamic_sampling: int = 0
    overlong: tuple[int, ...] = ()
    reference: ReferenceUpdate = ReferenceUpdate()

    def method(self) -> Method:
        """The method with these choices."""
        penalty = (OverlongPenalty(*self.overlong),) if self.overlong else ()
        estimators = (*penalty, *self.advantage)
        return Method(
            curriculum=self._curriculum(),
            sampler=self.sampler,
            filter=keep_nonzero_std if self.dynamic_sampling else keep_all,
            advantage=estimators[0] if len(estimators) == 1 else chain(*estimators),
            loss=self._loss(),
            aggregation=self.aggregation,
            updates=self._updates(),
            reference=self.reference,
        )

    def table(self) -> dict[str, Any]:
        """The table [method] of a recipe file."""
        return method_to_data(self.method())

    def _loss(self) -> Loss:
        loss = self.policy_loss + self.kl
        return loss + EntropyBonus(self.entropy_coef) if self.entropy_coef else loss

    def _curriculum(self) -> Curriculum:
        tasks = ShuffledTasks()
        return DynamicSampling(tasks, self.dynamic_sampling) if self.dynamic_sampling else tasks

    def _updates(self) -> UpdatePlan:
        if self.epochs == self.minibatches == 1:
            return SingleUpdate()
        return Updates(self.epochs, minibatches=self.minibatches)


def dual_clip(
    source: OptionValues, name: str, cap: float, clip_high: float, ratio: Ratio = token
) -> Ratio:
    """The ratio of `Clip` for a loss that is at most -cap A where A < 0.

    Args:
        source: The options.
        name: The option with the cap.
        cap: The largest ratio where A < 0.
        clip_high: Ratios are clipped above at 1 + clip_high where A > 0.
        ratio: The ratio without cap.
    """
    if cap < 1 + clip_high:
        source.differs(
            name,
            f"CappedRatio would also act where A > 0, since it is below {1 + clip_high:g}, the"
            " upper bound of the clip",
        )
        return ratio
    return CappedRatio(cap, ratio)
