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


def test_reasoning_is_compared_with_the_others_and_the_answer_is_imitated():
    A = verifree().advantage(batch().reward, batch()).tolist()
    assert A[0] == pytest.approx([0.6, 0.6, 0.8])
    assert A[1] == pytest.approx([-0.6, 0.2, 0.2])


def test_the_gradient_is_the_estimators():
    method = verifree()
    credited = batch().with_advantage(method.advantage)
    pi = perturb_logp(credited, [[0.1, 0.0, 0.2], [0.0, -0.1, 0.3]])
    loss = (method.aggregation(credited) * method.loss(pi, credited)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0].tolist() == pytest.approx([-0.3, -0.3, -0.4])  # halved: two rollouts
    assert gradient[1].tolist() == pytest.approx([0.3, -0.1, -0.1])


def test_an_answer_that_cannot_be_reached_trains_no_answer():
    cold = make_batch(
        group=[0],
        length=[2],
        reward_terms={"answer_probability": [0.0]},
        signals={"sampled": [[1.0, 0.0]]},
    )
    assert verifree().advantage(cold.reward, cold).tolist() == [[0.0, 0.0]]


def test_alone_only_the_answer_is_learned():
    alone = make_batch(
        group=[0],
        length=[2],
        reward_terms={"answer_probability": [0.5]},
        signals={"sampled": [[1.0, 0.0]]},
    )
    assert verifree().advantage(alone.reward, alone).tolist() == [[0.0, 0.5]]
