import pytest
import torch

from grupo.methods.ahpo import ahpo
from grupo.methods.grpo import grpo
from grupo.testing.batches import batch_of, moved

SAMPLED = [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def gradient(right, method):
    batch = batch_of(
        [0, 0, 0],
        reward=right,
        length=[1, 1, 2],
        parts={"correct": right},
        seen={"sampled": SAMPLED},
    ).credited(method.credit)
    pi = moved(batch, [[0.1, 0.0], [0.1, 0.0], [-0.5, -0.7]])
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, pi.logp)[0]


def test_where_all_fail_the_expert_is_imitated_and_nothing_else_is_learned():
    # mean over the expert's two tokens of -log pi
    assert gradient([0.0, 0.0, 1.0], ahpo()).tolist() == [[0.0, 0.0], [0.0, 0.0], [-0.5, -0.5]]


def test_where_one_is_right_it_is_grpo_of_own_rollouts():
    ours = gradient([1.0, 0.0, 1.0], ahpo())
    alone = batch_of([0, 0], reward=[1.0, 0.0]).credited(grpo(kl=0.0).credit)
    pi = moved(alone, [[0.1], [0.1]])
    loss = (grpo(kl=0.0).weigh(alone) * grpo(kl=0.0).loss(pi, alone)).sum()
    theirs = torch.autograd.grad(loss, pi.logp)[0]
    assert ours[:2, 0].tolist() == pytest.approx(theirs[:, 0].tolist())
    assert ours[2].tolist() == [0.0, 0.0]


def test_a_higher_bar_imitates_beside_a_success():
    both = gradient([1.0, 0.0, 1.0], ahpo(enough=2))
    assert both[2].tolist() == [-0.5, -0.5]
    assert both[0, 0] < 0 < both[1, 0]


def test_the_demonstration_is_no_success_of_ones_own():
    assert gradient([0.0, 0.0, 1.0], ahpo(enough=1))[2, 0] < 0


def test_the_defaults():
    assert ahpo() == ahpo(group=8, enough=1, clip=0.2)
    assert ahpo().needs == {"sampled"}
    assert ahpo().reads_parts == {"correct"}
