"""Methods that violate a property each, and the message that each property gives."""

import random

import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import NLL, Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.testing import limit_properties, properties, value_properties


def counts_padding(batch: Batch) -> PerAction:
    return torch.ones_like(batch.old_logp) / batch.mask.sum()


def by_position(x, batch):
    return x * torch.arange(len(x))


def by_group_number(x, batch):
    return x * batch.group


def minus_batch_mean(x, batch):
    return x - x.mean()


def exponential(x, batch):
    return x.exp()


def unguarded_token_mean(batch: Batch) -> PerAction:
    return batch.mask / batch.mask.sum()


def scaled_to_longest(x, batch):
    return x * batch.lengths / (1 + group_ops.max(batch.lengths, batch.group)) + 0 * x.max()


def writes_in_place(x, batch):
    return x.sub_(1.0)


def reads_undeclared(x, batch):
    return x * batch.signals["confidence"].mean()


@component
class ReadsPadding(Loss):
    """Sums the log-probs of a row, padding included."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp.sum(1, keepdim=True)


@component
class UndeclaredCoupling(Loss):
    """Couples rows without declaring it."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        logp = pi.logp * batch.mask
        return -batch.advantage * (logp - logp.mean()) ** 2


@component
class RandomScale(Loss):
    """A loss with a random factor, which differs at each call."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * random.random()


@component
class UndeclaredStopGradient(Loss):
    """Stops a gradient without declaring it."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp * pi.logp.detach().exp()


@component
class NonzeroWithoutAdvantage(Loss):
    """Declares that it is 0 without advantages, and is not."""

    @property
    def zero_if_no_advantage(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -(batch.advantage + 0.1) * pi.logp


@component
class SquaredLogRatio(Loss):
    """Has a factor of exp((log ratio)^2), which overflows at a ratio of e^50."""

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        log_ratio = (pi.logp - batch.old_logp) * batch.mask
        return -batch.advantage * (log_ratio**2).exp()


@component
class ScaleByUnguardedStd:
    """Divides by 1 plus the batch's deviation, which is 0 / 0 for a single rollout."""

    requires = Requires(whole_batch=True)

    def __call__(self, x, batch):
        return x / (1 + (((x - x.mean()) ** 2).sum() / (len(x) - 1)).sqrt())


@component
class HiddenSchedules:
    """Holds its schedules in a field that is not searched."""

    table: frozenset

    def __call__(self, x, batch):
        return x


@component
class EveryFew:
    """An advantage estimator that acts every few of something."""

    every: int = 10

    def __call__(self, x, batch):
        return x


class PlainObject:
    """An object without value equality: a copy is not equal."""

    def __call__(self, x, batch):
        return x


BROKEN = [
    (
        properties.padding_changes_nothing,
        Method(loss=ReadsPadding()),
        "the loss changes when padding is added, by",
    ),
    (
        properties.padding_changes_nothing,
        Method(aggregation=counts_padding, loss=NLL()),
        "the loss changes when padding is added",
    ),
    (
        properties.masked_actions_get_no_gradient,
        Method(aggregation=counts_padding),
        "masked actions have weights of up to",
    ),
    (properties.masked_actions_get_no_gradient, Method(loss=ReadsPadding()), "in 'logp'"),
    (
        properties.rollout_and_row_order_do_not_matter,
        Method(advantage=by_position),
        "rollouts are reordered",
    ),
    (
        properties.group_numbering_does_not_matter,
        Method(advantage=by_group_number),
        "groups are renumbered",
    ),
    (
        properties.other_groups_do_not_matter,
        Method(advantage=minus_batch_mean),
        "group 0 alone change",
    ),
    (
        properties.other_groups_do_not_matter,
        Method(loss=UndeclaredCoupling()),
        "the gradient of group",
    ),
    (
        limit_properties.equal_rewards_give_finite_gradients,
        Method(advantage=chain(Center(), ScaleByStd(eps=0.0))),
        "the loss is nan when every reward is 0.0",
    ),
    (
        limit_properties.extreme_ratios_give_finite_gradients,
        Method(loss=SquaredLogRatio()),
        "when ratios are e^50",
    ),
    (
        limit_properties.extreme_rewards_give_finite_gradients,
        Method(advantage=exponential),
        "the loss is nan when rewards are 1e6 and -1e6",
    ),
    (
        limit_properties.single_rollout_gives_finite_gradients,
        Method(advantage=ScaleByUnguardedStd()),
        "the loss is nan when rollout 1 is alone",
    ),
    (
        limit_properties.masked_batch_gives_zero_loss,
        Method(aggregation=unguarded_token_mean),
        "the loss is nan, not 0, when every action is masked",
    ),
    (
        limit_properties.empty_batch_gives_zero_loss,
        Method(advantage=scaled_to_longest),
        "an empty batch raises RuntimeError: max()",
    ),
    (
        properties.inputs_are_not_modified,
        Method(advantage=writes_in_place),
        "it wrote into its input: reward",
    ),
    (
        properties.required_signals_are_sufficient,
        Method(advantage=reads_undeclared),
        "'confidence' was not measured",
    ),
    (
        properties.microbatch_size_does_not_matter,
        Method(loss=UndeclaredCoupling()),
        "with 1 rows at a time",
    ),
    (
        properties.number_of_ranks_does_not_matter,
        Method(loss=UndeclaredCoupling()),
        "with 2 ranks",
    ),
    (
        properties.two_backward_passes_equal_one,
        Method(loss=RandomScale()),
        "in two passes, by",
    ),
    (
        properties.gradient_matches_finite_difference,
        Method(loss=UndeclaredStopGradient()),
        "and the gradient is",
    ),
    (
        properties.zero_advantage_gives_zero_loss,
        Method(loss=NonzeroWithoutAdvantage()),
        "the loss is up to",
    ),
    (
        value_properties.schedules_resolve_to_numbers,
        Method(advantage=HiddenSchedules(frozenset({Linear(0, 1)}))),
        "are unresolved",
    ),
    (
        value_properties.copies_are_equal_with_full_repr,
        Method(advantage=PlainObject()),
        "a copy is not equal",
    ),
    (
        value_properties.copies_are_equal_with_full_repr,
        Method(advantage=lambda x, b: x),
        "'<lambda>'",
    ),
    (
        value_properties.intervals_state_their_unit,
        Method(advantage=chain(Center(), EveryFew())),
        "EveryFew.every does not say what it counts. Write Annotated[int, 'rollout steps'] or"
        " Annotated[int, 'updates'] as its type, or end its name with the unit: every_fraction",
    ),
]
