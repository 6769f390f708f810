"""Weights divided among ranks, with the collectives of one process or imitated ones."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from grupo.algo.optimizers import SGD, Adam
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.algo.optimizers.update import optimizer_step
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.quantization import Nf4
from grupo.models.sharding import FSDP2
from grupo.util.errors import ConfigError
from grupo.util.sharded_tensors import flat_entries, is_sharded, sharded_like, whole
from tests.helpers.tiny_lm import answer_batch, save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(save_model(tmp_path_factory.mktemp("sharding") / "model"))


@pytest.fixture
def mesh():
    """The mesh of one process, with real collectives."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.fixture
def mesh_of_four():
    """Rank 1 of four, of which the others are imitated."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def spec_of(model, **fields):
    return CausalLM(model, max_new_tokens=8, device="cpu", sharding=FSDP2(), **fields)


def local_size(parameters):
    return sum(p.to_local().numel() for p in parameters)


@pytest.mark.parametrize("lora", [None, Lora(4)])
def test_a_rank_has_its_share_of_trained_and_frozen_weights(model, mesh_of_four, lora):
    policy = spec_of(model, lora=lora).build()
    names = list(policy.weights())
    total = sum(p.numel() for p in policy.module.parameters())
    policy.shard(mesh_of_four)
    assert policy.is_sharded
    assert list(policy.weights()) == names
    assert all(map(is_sharded, policy.parameters()))
    assert local_size(policy.trained_module.parameters()) < 0.3 * total
    state = optimizer_tensors(stepped(policy))
    moments = [x for name, x in state.items() if name.endswith("exp_avg")]
    assert len(moments) == len(names)
    assert local_size(moments) < 0.3 * sum(p.numel() for p in policy.parameters())


def test_a_rank_keeps_its_rows_of_a_restored_tensor_only(mesh_of_four):
    template = dist.tensor.zeros(8, 3, device_mesh=mesh_of_four, placements=[dist.tensor.Shard(0)])
    part = sharded_like(template, torch.arange(24.0).view(8, 3)).to_local()
    assert part.tolist() == [[6, 7, 8], [9, 10, 11]]
    assert part.untyped_storage().nbytes() == part.nbytes


def stepped(policy):
    """An optimizer after one update of the policy with gradients of 1."""
    optimizer = Adam()(policy.parameters())
    for parameter in policy.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def test_the_whole_copy_has_the_weights_of_the_last_update(model, mesh):
    policy = spec_of(model).build()
    policy.shard(mesh)
    before = {name: weight.clone() for name, weight in policy.replicated_weights().items()}
    stepped(policy)
    assert all(before[n].equal(x) for n, x in policy.replicated_weights().items())
    policy.update_unsharded_copy()
    for name, weight in policy.replicated_weights().items():
        assert weight.equal(whole(policy.weights()[name]))
        assert not weight.equal(before[name])


def test_gradients_metrics_and_updates_are_those_of_a_whole_policy(model, mesh):
    results = []
    for is_sharded_policy in (False, True):
        policy = spec_of(model, dtype="float64").build()
        if is_sharded_policy:
            policy.shard(mesh)
        batch = answer_batch(policy)
        policy.signals(batch)["logp"].sum().backward()
        metrics = optimizer_step(SGD()(policy.parameters()), 1e-2, 0.1)
        results.append((metrics, [whole(x) for x in policy.weights().values()]))
    (metrics, weights), (expected_metrics, expected) = results[::-1]
    assert metrics == pytest.approx(expected_metrics, rel=1e-5)
    for weight, other in zip(weights, expected, strict=True):
        assert torch.allclose(weight, other, atol=1e-6)


def test_the_state_of_a_whole_optimizer_is_restored_into_a_sharded_one(model, mesh):
    policy = spec_of(model).build()
    state = {name: x.clone() for name, x in optimizer_tensors(stepped(policy)).items()}
    policy.shard(mesh)
    optimizer = Adam()(policy.parameters())
    restore_optimizer(optimizer, state)
    restored = optimizer_tensors(optimizer)
    assert restored.keys() == state.keys()
    assert is_sharded(restored["0.exp_avg"])
    assert all(whole(restored[name]).equal(state[name]) for name in state)


def test_param_dtype_narrows_the_whole_copies_and_keeps_the_trained_weights(model, mesh):
    options = FSDP2(param_dtype="bfloat16")
    policy = replace(spec_of(model, dtype="bfloat16"), sharding=options).build()
    policy.dtype = torch.bfloat16  # also where the processor would emulate it
    batch = answer_batch(policy)
    policy.shard(mesh)
    reference = policy.load_frozen_copy()
    assert {x.dtype for x in policy.replicated_weights().values()} == {torch.bfloat16}
    assert {x.dtype for x in reference.module.parameters()} == {torch.bfloat16}
    assert {x.dtype for x in policy.weights().values()} == {torch.float32}
    logp = policy.signals(batch)["logp"]
    logp.sum().backward()
    assert {p.grad.dtype for p in policy.parameters()} == {torch.float32}
    with torch.no_grad():
        assert torch.allclose(logp, policy.signals(batch)["logp"], atol=1e-2)


def test_entries_and_whole_tensors_of_parts(mesh):
    numbers = torch.arange(15.0).view(5, 3)
    template = dist.tensor.zeros(5, 3, device_mesh=mesh, placements=[dist.tensor.Shard(0)])
    part = sharded_like(template, numbers)
    assert is_sharded(part)
    assert whole(part).equal(numbers)
    assert flat_entries(part, 4, 3).tolist() == flat_entries(numbers, 4, 3).tolist() == [0, 4, 8]
    assert sharded_like(template, torch.tensor(2.0)).equal(torch.tensor(2.0))  # a count of updates


def test_a_model_without_a_list_of_layers_is_refused(model, mesh):
    policy = spec_of(model).build()
    policy.hf_model.config.num_hidden_layers = 7
    with pytest.raises(
        ConfigError, match=r"has no list of 7 layers. Allowed with this model: None"
    ):
        policy.shard(mesh)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"sharding": FSDP2(param_dtype="bfloat16")},
            "sharding.param_dtype: 'bfloat16', and the policy computes in float32. Allowed: None",
        ),
        (
            {"lora": Lora(2), "quantization": Nf4()},
            "quantized weights cannot be divided among ranks. Allowed: without quantization.",
        ),
    ],
)
def test_options_that_cannot_be_combined_are_refused(model, fields, message):
    pytest.importorskip("bitsandbytes")
    with pytest.raises(ConfigError, match=message):
        replace(spec_of(model), **fields).check()
