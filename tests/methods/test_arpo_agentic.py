"""ARPO for tools: two leaves that share their first turn."""

import pytest
import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.arpo_agentic import MeanOfSharers, arpo_agentic
from grupo.rollouts.samplers import BranchWhenUnsure
from grupo.testing.batches import batch_of, moved
from grupo.testing.smoke.check_properties import check

HARD = arpo_agentic().but(credit=chain(Center(), ScaleByStd(), MeanOfSharers()))


def leaves(node=((0, 0, 1), (0, 0, 2)), group=(0, 0), length=(3, 3)):
    return batch_of(group=list(group), length=list(length), seen={"mark/node": [*map(list, node)]})


def shared(batch, x=(1.0, -0.5)):
    return MeanOfSharers()(torch.tensor(x).double(), batch).tolist()


def test_what_two_share_gets_the_mean_of_both():
    assert shared(leaves()) == [[0.25, 0.25, 1.0], [0.25, 0.25, -0.5]]  # (1 - 0.5) / 2


def test_nodes_of_other_groups_are_others():
    assert shared(leaves(group=(0, 1))) == [[1.0] * 3, [-0.5] * 3]


def test_where_masked_nothing_is_read():
    assert shared(leaves(((0, 1), (0, 7)), length=(2, 1))) == [[0.25, 1.0], [0.25, 0.0]]


def gradient(method, advantage) -> torch.Tensor:
    """What each action of two leaves learns, those that they share summed."""
    batch = leaves()
    credited = batch.credited(lambda x, b: advantage(torch.tensor([1.0, -0.5]).double(), b))
    pi = moved(credited, [[0.05, -0.05, 0.1]] * 2)
    loss = (method.weigh(credited) * method.loss(pi, credited)).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    return torch.cat([slope[:, :2].sum(0), slope[:, 2]])


def test_soft_and_hard_estimates_have_the_same_gradient():
    soft = gradient(arpo_agentic(), lambda x, b: x)
    hard = gradient(arpo_agentic(), MeanOfSharers())
    torch.testing.assert_close(soft, hard)
    # six tokens; of the first the two rows together: -(1 - 0.5) e^0.05 / 6
    assert soft[0].item() == pytest.approx(-0.5 * 2.718281828**0.05 / 6)


def test_the_hard_estimate_obeys_the_laws_too():
    assert [broken for _, _, broken in check(HARD) if broken] == []
    assert HARD.needs == {"mark/node"}


def test_the_defaults_are_those_of_the_released_run():
    method = arpo_agentic()
    assert method.sample == BranchWhenUnsure(16, 8, 2, chance=0.5, weight=0.2, tokens=20)
    assert (method.loss, method.weigh) == (Clip(0.2, 0.2), token_mean)
    assert method.credit == chain(Center(), ScaleByStd())
