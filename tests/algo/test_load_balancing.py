"""The load-balancing loss and the statistics of routers, by hand."""

import pytest
import torch
from torch import tensor

from grupo.algo.load_balancing import RouterSums, router_sums, token_costs

# two tokens, three experts: probabilities 1/2, 1/4, 1/4 and 1/8, 3/4, 1/8
LOGITS = tensor([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]], dtype=torch.float64).log()
CHOSEN = tensor([[0, 1], [1, 2]])
OWN = torch.zeros(2, dtype=torch.bool)


def sums(count=(1.0, 1.0), layers=1) -> RouterSums:
    count = tensor(count, dtype=torch.float64)
    return router_sums([LOGITS] * layers, [CHOSEN] * layers, count, OWN)


def test_the_loss_is_the_product_of_fractions_and_probabilities():
    # f = (1/2, 1, 1/2), P = (5/16, 8/16, 3/16): 3 (5/32 + 16/32 + 3/32) = 9/4
    assert sums().metrics()["router/aux_loss"] == pytest.approx(9 / 4)


def test_layers_are_taken_together():
    other = router_sums([LOGITS, LOGITS], [CHOSEN, 2 - CHOSEN], torch.ones(2).double(), OWN)
    # f = (1/2, 1, 1/2) in both layers, and P as in one layer
    assert other.metrics()["router/aux_loss"] == pytest.approx(9 / 4)
    one_sided = router_sums([LOGITS, LOGITS], [CHOSEN, CHOSEN * 0], torch.ones(2).double(), OWN)
    # f = ((1/2 + 2) / 2, 1/2, 1/4): 3 (1.25 * 5 + 0.5 * 8 + 0.25 * 3) / 16 = 33/16
    assert one_sided.metrics()["router/aux_loss"] == pytest.approx(33 / 16)


def test_an_even_load_has_the_number_of_chosen_experts_as_its_loss():
    even = torch.zeros(3, 3)
    chosen = tensor([[0, 1], [1, 2], [2, 0]])
    metrics = router_sums([even], [chosen], torch.ones(3), torch.zeros(3).bool()).metrics()
    assert metrics["router/aux_loss"] == pytest.approx(2.0)
    assert metrics["router/max_load"] == 1.0


def test_padding_counts_nothing_and_a_shared_token_several_times():
    twice = router_sums(
        [LOGITS[[0, 0, 1]]], [CHOSEN[[0, 0, 1]]], torch.ones(3).double(), torch.zeros(3).bool()
    )
    for actual, expected in zip(vars(sums((2.0, 1.0))).values(), vars(twice).values(), strict=True):
        torch.testing.assert_close(actual, expected)
    without = sums((1.0, 0.0))
    assert without.chosen.tolist() == [[1.0, 1.0, 0.0]]
    assert without.metrics()["router/dead_experts"] == pytest.approx(1 / 3)


def test_the_sum_of_parts_is_that_of_the_whole():
    whole = sums()
    parts = sums((1.0, 0.0)) + sums((0.0, 1.0))
    for actual, expected in zip(vars(parts).values(), vars(whole).values(), strict=True):
        torch.testing.assert_close(actual, expected)


def test_token_costs_add_up_to_the_loss_and_have_gradients_in_probabilities_only():
    logits = LOGITS.clone().requires_grad_()
    loss = token_costs([logits], sums().expert_cost).sum()
    assert loss.item() == pytest.approx(9 / 4)
    loss.backward()
    probability = LOGITS.exp()
    cost = 3 / 2 * tensor([0.5, 1.0, 0.5])  # E f_e / N
    expected = probability * (cost - (probability * cost).sum(1, keepdim=True))
    torch.testing.assert_close(logits.grad, expected.to(logits), rtol=1e-5, atol=1e-6)


def test_given_experts_are_counted():
    given = router_sums([LOGITS], [CHOSEN], tensor([2.0, 1.0]), tensor([True, False]))
    assert (given.given.item(), given.tokens.item()) == (2.0, 3.0)


def test_nothing_has_no_metrics():
    assert sums((0.0, 0.0)).metrics() == {}
