from math import log

import pytest
import torch

from grupo.algo.divergences_full import forward_kl, jsd, reverse_kl

P, Q = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()


def test_exact_divergences_match_hand_computed_values():
    assert reverse_kl(P, Q).item() == pytest.approx(0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1))
    assert forward_kl(P, Q).item() == pytest.approx(0.9 * log(0.9 / 0.5) + 0.1 * log(0.1 / 0.5))
    # the mixture is 0.7, 0.3: KLs of 0.08718 and 0.11632 from it
    assert jsd(P, Q).item() == pytest.approx((0.08718 + 0.11632) / 2, abs=1e-5)


def test_tokens_excluded_by_both_have_no_value_and_no_gradient():
    logits = torch.tensor([[0.3, -0.2, -torch.inf]], requires_grad=True)
    other = torch.tensor([[0.0, 0.0, -torch.inf]]).log_softmax(-1)
    for divergence in (reverse_kl, forward_kl, jsd):
        value = divergence(logits.log_softmax(-1), other)
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        assert value.isfinite().all()
        assert gradient.isfinite().all()
        assert gradient[0, 2] == 0


def test_reverse_kl_is_infinite_if_the_other_excludes_a_token():
    certain = torch.tensor([[0.0, -torch.inf]])
    assert reverse_kl(P, certain).item() == torch.inf
    assert forward_kl(P, certain).item() == pytest.approx(log(2))
    assert jsd(P, certain).isfinite().all()
