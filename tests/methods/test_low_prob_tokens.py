from dataclasses import replace

import pytest
import torch

from grupo.methods.low_prob_tokens import ByProbability, low_prob_tokens
from grupo.testing import batch_of


def test_the_less_probable_an_action_the_less_of_its_advantage_it_keeps():
    batch = batch_of([0, 0], length=[2, 1])
    batch = replace(batch, old_logp=torch.tensor([[1.0, 0.5], [0.01, 7.0]]).double().log())
    A = ByProbability(0.3)(torch.tensor([1.0, -2.0]).double(), batch)
    assert A[batch.mask].tolist() == pytest.approx([1.0, 0.85, -2 * 0.703])
    assert A[1, 1] == 0


def test_alpha_0_is_grpo():
    batch = batch_of([0, 0], [1.0, 0.0])
    A = low_prob_tokens(alpha=0.0).credit(batch.reward, batch)
    assert A.flatten().tolist() == pytest.approx([0.70711, -0.70711], abs=1e-5)


def test_the_default_is_this():
    assert low_prob_tokens().credit.steps[-1] == ByProbability(0.3)
