import pytest
import torch

from grupo.methods.verifree import verifree
from grupo.testing.batches import batch_of, moved

SAMPLED = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]  # two steps of reasoning and one of the answer; 1, 2


def batch():
    return batch_of(
        group=[0, 0],
        length=[3, 3],
        parts={"answer_probability": [0.8, 0.2]},
        seen={"sampled": SAMPLED},
    )


def test_reasoning_is_compared_with_the_others_and_the_answer_is_imitated():
    A = verifree().credit(batch().reward, batch()).tolist()
    assert A[0] == pytest.approx([0.6, 0.6, 0.8])
    assert A[1] == pytest.approx([-0.6, 0.2, 0.2])


def test_the_gradient_is_the_estimators():
    method = verifree()
    credited = batch().credited(method.credit)
    pi = moved(credited, [[0.1, 0.0, 0.2], [0.0, -0.1, 0.3]])
    loss = (method.weigh(credited) * method.loss(pi, credited)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0].tolist() == pytest.approx([-0.3, -0.3, -0.4])  # halved: two rollouts
    assert gradient[1].tolist() == pytest.approx([0.3, -0.1, -0.1])


def test_an_answer_that_cannot_be_reached_teaches_no_answer():
    cold = batch_of(
        group=[0], length=[2], parts={"answer_probability": [0.0]}, seen={"sampled": [[1.0, 0.0]]}
    )
    assert verifree().credit(cold.reward, cold).tolist() == [[0.0, 0.0]]


def test_alone_only_the_answer_is_learned():
    alone = batch_of(
        group=[0], length=[2], parts={"answer_probability": [0.5]}, seen={"sampled": [[1.0, 0.0]]}
    )
    assert verifree().credit(alone.reward, alone).tolist() == [[0.0, 0.5]]
