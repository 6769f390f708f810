"""Self-improving SRPO: loss and gradient of the six rollouts of a pair, by hand."""

import pytest

from grupo.methods.srpo_self_improving import srpo_self_improving
from tests.helpers.preference_batches import loss_and_gradient, pair_batch

# w, l, w after w, w after l, l after w, l after l
TERMS = {
    "answer_is_chosen": [1.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    "previous_is_chosen": [0.5, 0.5, 1.0, 0.0, 1.0, 0.0],
}


def six(*log_ratio):
    return pair_batch(
        log_ratio,
        length=(1,) * 6,
        group=(0,) * 6,
        reward=TERMS["answer_is_chosen"],
        reward_terms=TERMS,
    )


def test_loss_of_the_reference_policy():
    generator, _ = loss_and_gradient(srpo_self_improving(1.0, 1.0), six(*[0.0] * 6))
    reviser, _ = loss_and_gradient(srpo_self_improving(1.0, 0.0), six(*[0.0] * 6))
    assert (generator, reviser) == (pytest.approx(0.25), pytest.approx(0.5))


def test_loss_and_gradient_of_the_generator():
    # h(w|l) + h(w) - h(l|w) - h(l) = 1.5: (0.5 - 0.75)^2 = 0.0625; slope 2 (-0.25) (-0.5)
    batch = six(0.5, -0.5, 9.0, 0.25, -0.25, 7.0)
    loss, gradient = loss_and_gradient(srpo_self_improving(1.0, 1.0), batch)
    assert loss == pytest.approx(0.0625)
    assert gradient == pytest.approx([0.25, -0.25, 0.0, 0.25, -0.25, 0.0])


def test_loss_and_gradient_of_the_reviser():
    # h(w|l) - h(l|l) = 0.2, h(w|w) - h(l|w) = 0.3
    batch = six(5.0, -4.0, 0.3, 0.2, 0.0, 0.0)
    loss, gradient = loss_and_gradient(srpo_self_improving(1.0, 0.0), batch)
    assert loss == pytest.approx(0.3**2 + 0.2**2)
    assert gradient == pytest.approx([0.0, 0.0, -0.4, -0.6, 0.4, 0.6])


def test_both_losses_are_weighted():
    batch = six(0.5, -0.5, 0.3, 0.25, -0.25, 0.0)
    parts = [loss_and_gradient(srpo_self_improving(1.0, a), batch)[0] for a in (0.0, 1.0)]
    mixed, _ = loss_and_gradient(srpo_self_improving(1.0, 0.25), batch)
    assert mixed == pytest.approx(0.75 * parts[0] + 0.25 * parts[1])
