"""Ranges of the methods' arguments and components."""

import pytest

from grupo.algo.advantages.gae import GAE
from grupo.algo.advantages.reward_shaping import RepetitionPenalty
from grupo.algo.losses import DiscriminativeLoss, IntervalMask
from grupo.algo.losses.critic import ClippedValueLoss
from grupo.core.controllers import AdaptiveKL, ExponentialSum, LastValue
from grupo.core.schedules import Linear, resolve_schedules
from grupo.methods.a_grae import a_grae
from grupo.methods.arrol import arrol
from grupo.methods.empo import ClusterFrequency, empo
from grupo.methods.fspo import fspo
from grupo.methods.icepop import icepop
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.methods.minirl import MaskedSamplerRatio
from grupo.methods.ngrpo import ngrpo
from grupo.methods.ppo import ppo
from grupo.methods.r3 import r3
from grupo.methods.riskpo import riskpo
from grupo.methods.sapo import sapo
from grupo.rollouts.curricula import Thompson
from grupo.util.errors import ConfigError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sapo(positive_temperature=0.0), "positive_temperature: 0.0. Allowed: above 0."),
        (lambda: DiscriminativeLoss(tau=0.0), "tau: 0.0. Allowed: above 0."),
        (lambda: ClippedValueLoss(-0.1), "clip_eps: -0.1. Allowed: 0 or more."),
        (lambda: fspo(clip_width=-0.1), "clip_width: -0.1. Allowed: 0 or more."),
        (lambda: MaskedSamplerRatio(cap=0.0), "cap: 0.0. Allowed: above 0."),
        (lambda: GAE(gae_lambda=1.5), "gae_lambda: 1.5. Allowed: 0 to 1."),
        (lambda: ppo(gae_lambda=1.5), "gae_lambda: 1.5. Allowed: 0 to 1."),
        (lambda: RepetitionPenalty(-0.1, 1.5), "discount: 1.5. Allowed: 0 to 1."),
        (lambda: Thompson(decay_per_step=2.0), "decay_per_step: 2.0. Allowed: 0 to 1."),
        (lambda: a_grae(target_accuracy=0.0), "target_accuracy: 0.0. Allowed: above 0, at most 1."),
        (lambda: knapsack_rl(confidence=1.0), "confidence: 1.0. Allowed: above 0, below 1."),
        (lambda: AdaptiveKL(1.0, target=0.0), "target: 0.0. Allowed: above 0."),
        (lambda: AdaptiveKL(1.0, 0.1, gain=5.0), "gain: 5.0. Allowed: above 0, below 5."),
        (lambda: ExponentialSum("loss", 1.5), "decay: 1.5. Allowed: 0 to 1."),
        (lambda: IntervalMask(2.0, 0.5), "high: 0.5. Allowed: low, 2.0, or more."),
        (
            lambda: ClusterFrequency(min_entropy=0.5, max_entropy=0.25),
            "max_entropy: 0.25. Allowed: min_entropy, 0.5, or more.",
        ),
        (lambda: riskpo(quantile_low=0.0), r"quantile_levels: \(0.0, 0.9\)"),
    ],
)
def test_value_outside_the_range_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_fraction_of_a_schedule_is_checked_once_it_has_a_value():
    method = arrol(keep_fraction=1.5)
    with pytest.raises(ConfigError, match=r"keep_fraction: 1\.5\. Allowed: 0 to 1"):
        resolve_schedules(method, 1.0)


@pytest.mark.parametrize("method", [icepop(min_ratio=Linear(0.0, 9.0)), empo(5, 0.2, Linear(0, 2))])
def test_order_of_two_bounds_is_checked_once_they_have_values(method):
    resolve_schedules(method, 0.0)
    with pytest.raises(ConfigError, match="or more"):
        resolve_schedules(method, 1.0)


def test_equal_bounds_and_controlled_bounds_are_accepted():
    assert IntervalMask(1.0, 1.0).high == 1.0
    assert IntervalMask(LastValue("kl", 2.0), 1.0).high == 1.0


def test_rewards_of_minus_1_and_1_fit_the_arguments_that_are_rewards():
    assert r3(max_length=4, failure_threshold=-0.5).sampler.failure_threshold == -0.5
    assert ngrpo(max_reward=-0.5).advantage.max_reward == -0.5
