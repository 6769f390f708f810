from math import cos, exp, pi

import pytest

from grupo.algo.advantages import Center, ClampAdvantage, chain
from grupo.algo.losses import KL, Clip
from grupo.core.controllers import AdaptiveKL, LastValue, TargetEntropy
from grupo.core.schedules import Cosine, Exponential, Linear, Warmup, resolve_schedules
from grupo.method import Method


def test_linear_is_a_straight_line():
    line = Linear(2.0, -2.0)
    assert [line.value(p) for p in (0.0, 0.25, 1.0)] == [2.0, 1.0, -2.0]


def test_cosine_is_half_a_cosine():
    wave = Cosine(3.0, 1.0)
    assert wave.value(0.0) == 3.0
    assert wave.value(0.25) == pytest.approx(1 + 2 * (1 + cos(pi / 4)) / 2)
    assert wave.value(1.0) == pytest.approx(1.0)


def test_exponential_falls_by_the_same_factor_in_every_step():
    assert [Exponential(0.3, 2.0).value(p) for p in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.3, 0.3 * exp(-1), 0.3 * exp(-2)]
    )


def test_warmup_rises_over_its_fraction_to_the_schedule():
    assert [Warmup(0.2, 3.0).value(p) for p in (0.0, 0.1, 0.2, 1.0)] == [0.0, 1.5, 3.0, 3.0]
    assert Warmup(0.5, Linear(4.0, 0.0)).value(0.25) == 3.0 * 0.5


def test_schedules_are_resolved_at_any_depth():
    method = Method(
        advantage=chain(Center(), ClampAdvantage(Linear(-1.0, -2.0), 1.0)),
        loss=Clip() + Linear(0.4, 0.0) * KL(),
    )
    resolved = resolve_schedules(method, 0.5)
    assert resolved.advantage == chain(Center(), ClampAdvantage(-1.5, 1.0))
    assert resolved.loss == Clip() + 0.2 * KL()


def test_method_without_schedules_is_returned_itself():
    method = Method()
    assert resolve_schedules(method, 0.5) is method


def test_last_value_is_the_last_metric():
    assert LastValue("policy/entropy", 0.5).next_value([]) == 0.5
    assert LastValue("policy/entropy", 0.5).next_value([0.9, 0.7]) == 0.7


def test_adaptive_kl_changes_by_at_most_a_fifth_of_its_gain():
    control = AdaptiveKL(start=2.0, target=0.1, gain=0.1)
    # twice the target: 1, clipped to 0.2; 5 % above it; a KL of 0: -1, clipped to -0.2
    assert control.next_value([0.2]) == pytest.approx(2 * 1.02)
    assert control.next_value([0.2, 0.105, 0.0]) == pytest.approx(2 * 1.02 * 1.005 * 0.98)


def test_target_entropy_acts_below_its_target_and_accumulates():
    control = TargetEntropy(target=0.2, step_size=0.01)
    assert control.next_value([]) == 0.0
    assert control.next_value([0.1, 0.15]) == pytest.approx(0.02)
    assert control.next_value([0.1, 0.15, 0.3]) == 0.0  # above the target it is 0
    assert control.next_value([0.1, 0.15, 0.3, 0.2]) == pytest.approx(0.02)  # 0.01 + 0.01


def test_controllers_are_resolved_from_metrics():
    method = Method(loss=Clip() + AdaptiveKL(1.0, 0.1) * KL())
    resolved = resolve_schedules(method, 0.5, {"policy/kl_ref": [0.2]})
    assert resolved.loss == Clip() + 1.02 * KL()
    assert method.controller_metric_names == {"policy/kl_ref"}


def test_gain_of_verl_s_controller_is_rollouts_over_horizon():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, AdaptiveKLController(2.0, 0.1, 100),
    # update(kl, 10): the same rule, its gain of 10 rollouts over a horizon of 100 the paper's 0.1
    verl = [2.04, 2.0502, 2.009196, 2.009196]
    kl = [0.2, 0.105, 0.0, 0.1]
    ours = [AdaptiveKL(2.0, 0.1, gain=10 / 100).next_value(kl[: n + 1]) for n in range(4)]
    assert ours == pytest.approx(verl)
    # AdaptiveKLController(0.2, 6.0, 10000), update(kl, 256): at its default horizon a batch of 256
    # gains 0.0256 a step, a quarter of the paper's
    verl = [0.201024, 0.20153862144, 0.20050674369822719]
    kl = [8.0, 6.6, 3.0]
    ours = [AdaptiveKL(0.2, 6.0, gain=256 / 10_000).next_value(kl[: n + 1]) for n in range(3)]
    assert ours == pytest.approx(verl)
    assert AdaptiveKL(0.2, 6.0).next_value(kl[:1]) == pytest.approx(0.2 * 1.02)
