import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.batch import Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.ema_pg import ema_pg
from grupo.testing.batches import make_batch


def test_kl_term_is_exact_and_added_to_surrogate():
    batch = make_batch([0], advantage=[1.0])
    logp = (batch.old_logp + 0.25).requires_grad_()
    kl = torch.tensor([[0.7]], dtype=torch.float64, requires_grad=True)
    loss = ema_pg().loss(Signals({"logp": logp, "reverse_kl@ref": kl}), batch)
    r = torch.tensor(0.25).double().exp().item()  # 1.284: above 1.2, above 1.28 too
    assert r > 1.28
    assert loss.item() == pytest.approx(-1.28 + 0.001 * 0.7)
    by_logp, by_kl = torch.autograd.grad(loss.sum(), [logp, kl])
    assert (by_logp.item(), by_kl.item()) == (0.0, pytest.approx(0.001))


def test_reference_is_exponential_moving_average():
    assert ema_pg().reference == ReferenceUpdate(rate=0.05, every=10)


def test_defaults_match_release():
    assert ema_pg().requires.all_signals == {"reverse_kl@ref"}
    assert ema_pg().requires.signals == frozenset()


def test_update_plan_is_the_released_one():
    assert ema_pg().updates == Updates(minibatches=2)
