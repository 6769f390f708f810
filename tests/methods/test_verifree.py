import pytest
import torch

from grupo.methods.verifree import verifree
from grupo.testing.batches import make_batch, perturb_logp

SAMPLED = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]  # two steps of reasoning and one of the answer; 1, 2


def batch():
    return make_batch(
        group=[0, 0],
        length=[3, 3],
        reward_terms={"answer_probability": [0.8, 0.2]},
        signals={"sampled": SAMPLED},
    )


def test_reasoning_uses_leave_one_out_baseline_and_answer_is_imitated():
    A = verifree().advantage(batch().reward, batch()).tolist()
    assert A[0] == pytest.approx([0.6, 0.6, 0.8])
    assert A[1] == pytest.approx([-0.6, 0.2, 0.2])


def test_advantage_declares_what_it_reads():
    requires = verifree().advantage.requires
    assert requires.signals == {"sampled"}
    assert requires.reward_terms == {"answer_probability"}


def test_gradient_matches_estimator():
    method = verifree()
    batch_with_advantage = batch().with_advantage(method.advantage)
    pi = perturb_logp(batch_with_advantage, [[0.1, 0.0, 0.2], [0.0, -0.1, 0.3]])
    loss = (method.aggregation(batch_with_advantage) * method.loss(pi, batch_with_advantage)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0].tolist() == pytest.approx([-0.3, -0.3, -0.4])  # halved: two rollouts
    assert gradient[1].tolist() == pytest.approx([0.3, -0.1, -0.1])


def test_answer_with_zero_probability_has_no_gradient():
    cold = make_batch(
        group=[0],
        length=[2],
        reward_terms={"answer_probability": [0.0]},
        signals={"sampled": [[1.0, 0.0]]},
    )
    assert verifree().advantage(cold.reward, cold).tolist() == [[0.0, 0.0]]


def test_single_rollout_trains_answer_only():
    single_rollout = make_batch(
        group=[0],
        length=[2],
        reward_terms={"answer_probability": [0.5]},
        signals={"sampled": [[1.0, 0.0]]},
    )
    assert verifree().advantage(single_rollout.reward, single_rollout).tolist() == [[0.0, 0.5]]
