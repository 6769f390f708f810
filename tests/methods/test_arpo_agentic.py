"""ARPO for tools: two leaves that share their first turn."""

import pytest
import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.methods.arpo_agentic import SharedNodeMean, arpo_agentic
from grupo.rollouts.samplers import EntropyBranching
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.smoke.check_properties import check_properties

HARD = arpo_agentic().replace(advantage=chain(Center(), ScaleByStd(), SharedNodeMean()))


def batch_of_leaves(node=((0, 0, 1), (0, 0, 2)), group=(0, 0), length=(3, 3)):
    return make_batch(
        group=list(group), length=list(length), signals={"step/node": [*map(list, node)]}
    )


def shared_node_mean(batch, x=(1.0, -0.5)):
    return SharedNodeMean()(torch.tensor(x).double(), batch).tolist()


def test_shared_actions_have_the_mean_advantage():
    assert shared_node_mean(batch_of_leaves()) == [
        [0.25, 0.25, 1.0],
        [0.25, 0.25, -0.5],
    ]  # (1 - 0.5) / 2


def test_nodes_are_separate_between_groups():
    assert shared_node_mean(batch_of_leaves(group=(0, 1))) == [[1.0] * 3, [-0.5] * 3]


def test_masked_actions_are_not_read():
    assert shared_node_mean(batch_of_leaves(((0, 1), (0, 7)), length=(2, 1))) == [
        [0.25, 1.0],
        [0.25, 0.0],
    ]


def gradient(method, advantage) -> torch.Tensor:
    """Gradient of each action of two leaves; shared actions are summed."""
    batch = batch_of_leaves()
    batch = batch.with_advantage(lambda x, b: advantage(torch.tensor([1.0, -0.5]).double(), b))
    pi = perturb_logp(batch, [[0.05, -0.05, 0.1]] * 2)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (per_row,) = torch.autograd.grad(loss, pi.logp)
    return torch.cat([per_row[:, :2].sum(0), per_row[:, 2]])


def test_soft_and_hard_estimates_have_the_same_gradient():
    soft = gradient(arpo_agentic(), lambda x, b: x)
    hard = gradient(arpo_agentic(), SharedNodeMean())
    torch.testing.assert_close(soft, hard)
    # six tokens; of the first the two rows together: -(1 - 0.5) e^0.05 / 6
    assert soft[0].item() == pytest.approx(-0.5 * 2.718281828**0.05 / 6)


@pytest.mark.slow
def test_hard_estimate_passes_the_method_properties():
    assert [broken for _, _, broken in check_properties(HARD) if broken] == []
    assert HARD.requires.all_signals == {"step/node"}


def test_defaults_are_those_of_the_released_run():
    method = arpo_agentic()
    assert method.sampler == EntropyBranching(
        16, 8, 2, branch_prob=0.5, entropy_weight=0.2, entropy_tokens=20
    )
    assert (method.loss, method.aggregation) == (Clip(0.2, 0.2), token_mean)
    assert method.advantage == chain(Center(), ScaleByStd())


def test_update_plan_is_the_released_one():
    assert arpo_agentic().updates == Updates(minibatches=8)
