from dataclasses import replace

import pytest
import torch

from grupo.methods.low_prob_tokens import ProbabilityWeight, low_prob_tokens
from grupo.testing.batches import make_batch
from tests.helpers.recorded_batches import OLD


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
    assert low_prob_tokens().advantage.estimators[-1] == ProbabilityWeight(0.3)


def test_matches_reference_implementation():
    # zhyang2226/AR-Lopti @ cbeb333, verl/trainer/ppo/core_algos.py, compute_grpo_outcome_advantage,
    # then ray_trainer.py, compute_reweight_advantage, both_linear_normal, 0.3, 0.7; inputs as below
    old = OLD
    batch = make_batch(
        [0, 0, 0, 1, 1, 1], [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], length=[3, 2, 1, 2, 3, 1]
    )
    batch = replace(batch, old_logp=torch.tensor(old).double())
    advantage = batch.with_advantage(low_prob_tokens().advantage).advantage[batch.mask]
    assert advantage.tolist() == pytest.approx(
        [
            0.9357259,
            1.018397,
            0.8551704,
            -0.4901554,
            -0.4563128,
            -0.4745643,
            0.5324577,
            0.4391139,
            0.4617994,
            0.4819704,
            0.5202471,
            -0.8937125,
        ],
        rel=1e-5,
    )
