from dataclasses import replace

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.low_prob_tokens import ProbabilityWeight, low_prob_tokens
from grupo.testing.batches import make_batch


def test_advantage_is_reduced_for_low_probability_tokens():
    batch = make_batch([0, 0], length=[2, 1])
    batch = replace(batch, old_logp=torch.tensor([[1.0, 0.5], [0.01, 7.0]]).double().log())
    A = ProbabilityWeight(0.3)(torch.tensor([1.0, -2.0]).double(), batch)
    assert A[batch.mask].tolist() == pytest.approx([1.0, 0.85, -2 * 0.703])
    assert A[1, 1] == 0


def test_alpha_zero_reduces_to_grpo():
    batch = make_batch([0, 0], [1.0, 0.0])
    A = low_prob_tokens(probability_weight=0.0).advantage(batch.reward, batch)
    assert A.flatten().tolist() == pytest.approx([0.70711, -0.70711], abs=1e-5)


def test_default_hyperparameters():
    assert low_prob_tokens().advantage.estimators[-1] == ProbabilityWeight(0.2)


def test_step_has_2_minibatches():
    assert low_prob_tokens().updates == Updates(minibatches=2)
