"""The load-balancing loss of an update does not depend on how its rows are divided."""

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.core.types import Rollout
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.training.update.gradients import accumulate_gradients
from tests.helpers.moe_models import save_moe
from tests.helpers.tiny_lm import batch_of, generate


@component
class Coupled(NLL):
    """-log pi, computed as a loss that couples rows."""

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -pi.logp + 0.0 * pi.logp.mean()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_moe(tmp_path_factory.mktemp("moe"), "olmoe")


def policy_of(folder: str, **fields) -> CausalPolicy:
    return CausalLM(folder, max_new_tokens=8, dtype="float64", **fields).build()


def batch_for(policy: CausalPolicy) -> Batch:
    rollouts = [Rollout((("", x),)) for group in generate(policy, attempts=2) for x in group]
    return batch_of(policy, rollouts)


def update(policy: CausalPolicy, batch: Batch, loss=NLL()) -> tuple[torch.Tensor, dict]:
    """The gradient of all parameters, and the metrics."""
    policy.module.zero_grad()
    metrics = accumulate_gradients(policy, Method(loss=loss, aggregation=token_mean), batch)
    grads = [p.grad.flatten() for p in policy.parameters() if p.grad is not None]
    return torch.cat(grads), metrics


@pytest.mark.parametrize("loss", [NLL(), Coupled()], ids=["direct", "coupled"])
def test_microbatches_change_neither_gradient_nor_statistics(folder, loss):
    policy = policy_of(folder, router_aux_loss=0.3)
    batch = batch_for(policy)
    whole, expected = update(policy, batch)
    policy.tokens_per_microbatch = 24
    assert len(list(policy.microbatches(batch))) > 2
    parts, metrics = update(policy, batch, loss)
    assert (parts - whole).norm() < 1e-6 * whole.norm()
    for name in ("loss", "router/aux_loss", "router/max_load", "router/dead_experts"):
        assert metrics[name] == pytest.approx(expected[name], rel=1e-6), name


def test_the_coefficient_scales_the_gradient_of_the_loss(folder):
    batch = batch_for(policy_of(folder))
    without, one, two = (
        update(policy_of(folder, router_aux_loss=x), batch)[0] for x in (0.0, 1.0, 2.0)
    )
    assert (one - without).norm() > 1e-3 * without.norm()
    assert ((two - without) - 2 * (one - without)).norm() < 1e-5 * (two - without).norm()


def test_statistics_are_logged_without_the_loss_and_replay_with_it(folder):
    policy = policy_of(folder)
    metrics = update(policy, batch_for(policy))[1]
    assert metrics["router/aux_loss"] > 0
    assert "router/replayed_frac" not in metrics
    replaying = policy_of(folder, router_replay=True)
    metrics = update(replaying, batch_for(replaying))[1]
    assert metrics["router/replayed_frac"] == 1.0
