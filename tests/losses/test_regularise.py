from dataclasses import replace
from math import exp

import pytest
import torch

from grupo import divergences
from grupo.batch import Named, Signals
from grupo.errors import Unmeasured
from grupo.losses import KL, Entropy
from grupo.testing import batch_of, moved

BATCH = batch_of(group=[0, 0])  # old and reference log-probabilities are -1


def test_kl_is_k3_against_the_reference():
    # the policy's -0.5 and -1.25: d = -0.5 and 0.25
    loss = KL()(moved(BATCH, [[0.5], [-0.25]]), BATCH).flatten().tolist()
    assert loss == pytest.approx([exp(-0.5) + 0.5 - 1, exp(0.25) - 0.25 - 1])


def test_the_gradient_of_kl_is_one_less_the_ratio():
    pi = moved(BATCH, [[0.5], [-0.25]])
    KL()(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([1 - exp(-0.5), 1 - exp(0.25)])


def test_kl_may_use_another_estimate_and_another_policy():
    loss = KL(divergences.k1, other="teacher")
    seen = Named({"logp@teacher": torch.tensor([[-3.0], [-0.5]], dtype=torch.float64)})
    batch = replace(BATCH, seen=seen)
    assert loss.needs == {"logp@teacher"}
    assert loss(moved(BATCH, [[0.0], [0.0]]), batch).tolist() == [[2.0], [-0.5]]
    assert [*loss.report(moved(BATCH, [[0.0], [0.0]]), batch)] == ["kl/teacher"]


def test_kl_without_a_reference_raises_by_its_name():
    with pytest.raises(Unmeasured, match="'logp@ref' was not measured"):
        KL()(moved(BATCH, [[0.0], [0.0]]), replace(BATCH, seen=Named()))


def test_entropy_is_what_the_policy_says_it_is():
    entropy = torch.tensor([[0.7], [0.1]], dtype=torch.float64, requires_grad=True)
    loss = -0.01 * Entropy()
    said = loss(Signals(logp=BATCH.old_logp, entropy=entropy), BATCH)
    said.sum().backward()
    assert loss.needs == {"entropy"}
    assert said.flatten().tolist() == pytest.approx([-0.007, -0.001])
    assert entropy.grad is not None
    assert entropy.grad.flatten().tolist() == pytest.approx([-0.01, -0.01])
