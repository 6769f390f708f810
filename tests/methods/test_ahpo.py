import pytest
import torch

from grupo.methods.ahpo import ahpo
from grupo.methods.grpo import grpo
from grupo.testing.batches import make_batch, perturb_logp

SAMPLED = [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def gradient(right, method):
    batch = make_batch(
        [0, 0, 0],
        reward=right,
        length=[1, 1, 2],
        reward_terms={"correct": right},
        signals={"sampled": SAMPLED},
    ).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1, 0.0], [0.1, 0.0], [-0.5, -0.7]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, pi.logp)[0]


def test_all_incorrect_group_only_imitates_the_expert():
    # mean over the expert's two tokens of -log pi
    assert gradient([0.0, 0.0, 1.0], ahpo()).tolist() == [[0.0, 0.0], [0.0, 0.0], [-0.5, -0.5]]


def test_group_with_a_correct_rollout_is_grpo_on_policy_rollouts():
    policy_gradient = gradient([1.0, 0.0, 1.0], ahpo())
    alone = make_batch([0, 0], reward=[1.0, 0.0]).with_advantage(grpo(kl_coef=0.0).advantage)
    pi = perturb_logp(alone, [[0.1], [0.1]])
    loss = (grpo(kl_coef=0.0).aggregation(alone) * grpo(kl_coef=0.0).loss(pi, alone)).sum()
    expected = torch.autograd.grad(loss, pi.logp)[0]
    assert policy_gradient[:2, 0].tolist() == pytest.approx(expected[:, 0].tolist())
    assert policy_gradient[2].tolist() == [0.0, 0.0]


def test_larger_min_correct_imitates_despite_a_success():
    both = gradient([1.0, 0.0, 1.0], ahpo(min_correct=2))
    assert both[2].tolist() == [-0.5, -0.5]
    assert both[0, 0] < 0 < both[1, 0]


def test_correct_demonstration_does_not_count_as_policy_success():
    assert gradient([0.0, 0.0, 1.0], ahpo(min_correct=1))[2, 0] < 0


def test_defaults():
    assert ahpo().requires.all_signals == {"sampled"}
    assert ahpo().requires.reward_terms == {"correct"}
