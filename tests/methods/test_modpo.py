"""MODPO: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.dpo import dpo
from grupo.methods.modpo import modpo
from grupo.rollouts.samplers import PreferencePairs
from grupo.util.errors import ConfigError
from tests.helpers.preference_batches import loss_and_gradient, pair_batch

MARGIN = (("short", 0.5),)


def short(chosen, rejected):
    return pair_batch([2.0, 0.0], reward_terms={"short": [chosen, rejected]})


def test_margin_cancels_the_difference():
    # (0.1 2 - 0.5 0.4) / 0.5 = 0
    loss, gradient = loss_and_gradient(modpo(MARGIN, beta=0.1), short(0.4, 0.0))
    assert loss == pytest.approx(log(2))
    assert gradient == pytest.approx([-0.1 / 0.5 / 2, 0.1 / 0.5 / 2])


def test_margin_is_divided_by_the_weight_of_the_preference():
    # weights 1/4 and 3/4: (0.2 - 0.25 0.4) / 0.75
    loss, _ = loss_and_gradient(modpo((("short", 0.25),), beta=0.1), short(0.4, 0.0))
    assert loss == pytest.approx(log(1 + exp(-0.1 / 0.75)))


def test_without_margin_it_has_the_loss_of_dpo():
    loss, gradient = loss_and_gradient(modpo((), beta=0.1), short(0.4, 0.0))
    assert loss == pytest.approx(log(1 + exp(-0.2)))  # 0.5981
    assert (loss, gradient) == loss_and_gradient(dpo(beta=0.1), short(0.4, 0.0))


@pytest.mark.parametrize("weights", [(("a", 1.0),), (("a", 0.5), ("b", 0.6)), (("a", -0.1),)])
def test_weights_off_the_simplex_are_refused(weights):
    with pytest.raises(ConfigError, match=r"margin_weights: .* Allowed: weights of 0 or more"):
        modpo(weights)


def test_environment_scores_the_terms_of_the_margin():
    assert modpo(MARGIN).sampler == PreferencePairs(reward_terms=("short",))
    assert modpo(MARGIN).requires.reward_terms == {"short"}
