"""Every optimizer continues bit for bit from its saved state."""

import pytest
import torch
from torch import nn

from grupo.algo.optimizers import SGD, Adafactor, Adam, Adam8bit, Muon, ScheduleFreeAdam
from grupo.algo.optimizers.averaging import use_averaged_weights
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.algo.optimizers.update import optimizer_step
from grupo.storage import safetensors

OPTIMIZERS = (
    Adam(),
    Adam(weight_decay=0.1),
    SGD(),
    SGD(momentum=0.9, nesterov=True, weight_decay=0.1),
    Adafactor(weight_decay=0.1),
    Muon(weight_decay=0.1),
    ScheduleFreeAdam(warmup_updates=4, weight_decay=0.1),
    Adam8bit(weight_decay=0.1),
)


def make_parameters() -> list[nn.Parameter]:
    """An embedding, a matrix with a state of 8 bits, and a vector."""
    random = torch.Generator().manual_seed(0)
    shapes = ((7, 4), (64, 80), (5,))
    return [nn.Parameter(torch.randn(shape, generator=random)) for shape in shapes]


def make_optimizer(spec, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return spec(parameters, parameters[:1])


def run_updates(optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Run updates whose gradients depend on the step and the weights."""
    for step in steps:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        sum((p.sin() * (step + 1)).sum() for p in parameters).backward()
        optimizer_step(optimizer, learning_rate=0.1 / (step + 1), max_grad_norm=1.0)


@pytest.mark.parametrize("spec", OPTIMIZERS, ids=repr)
def test_restored_optimizer_continues_bit_identically(tmp_path, spec):
    uninterrupted, first = make_parameters(), make_parameters()
    run_updates(make_optimizer(spec, uninterrupted), range(7))
    stopped = make_optimizer(spec, first)
    run_updates(stopped, range(3))
    path = tmp_path / "optimizer.safetensors"
    path.write_bytes(b"".join(safetensors.file_chunks(optimizer_tensors(stopped))))
    second = [nn.Parameter(p.detach().clone()) for p in first]
    resumed = make_optimizer(spec, second)
    restore_optimizer(resumed, safetensors.load_tensors(path))
    run_updates(resumed, range(3, 7))
    assert all(torch.equal(a, b) for a, b in zip(uninterrupted, second, strict=True))


@pytest.mark.parametrize("spec", [spec for spec in OPTIMIZERS if spec != SGD()], ids=repr)
def test_optimizer_without_its_state_takes_different_updates(spec):
    uninterrupted, second = make_parameters(), make_parameters()
    run_updates(make_optimizer(spec, uninterrupted), range(7))
    run_updates(make_optimizer(spec, second), range(3))
    run_updates(make_optimizer(spec, second), range(3, 7))
    assert not torch.equal(uninterrupted[1], second[1])


def test_optimizer_tensors_are_named_by_parameter_index():
    optimizer = Adam()(make_parameters())
    run_updates(optimizer, range(2))
    state = optimizer_tensors(optimizer)
    slots = ("step", "exp_avg", "exp_avg_sq")
    assert set(state) == {f"{i}.{slot}" for i in (0, 1, 2) for slot in slots}
    assert state["1.exp_avg"].shape == (64, 80)
    assert state["2.step"].item() == 2


def test_numbers_of_an_optimizer_are_saved_exactly():
    optimizer = ScheduleFreeAdam()(make_parameters())
    run_updates(optimizer, range(2))
    state = optimizer_tensors(optimizer)
    assert state["group.0.k"].item() == 2
    assert state["group.0.train_mode"].item() is True
    assert state["group.0.weight_sum"].item() == 0.1**2 + 0.1**2  # of the largest rates so far


@pytest.mark.parametrize("spec", OPTIMIZERS, ids=repr)
def test_optimizer_without_updates_restores_from_empty_state(spec):
    parameters, others = make_parameters(), make_parameters()
    optimizer = make_optimizer(spec, parameters)
    restore_optimizer(optimizer, optimizer_tensors(optimizer))
    run_updates(optimizer, range(2))
    run_updates(make_optimizer(spec, others), range(2))
    assert all(torch.equal(a, b) for a, b in zip(parameters, others, strict=True))


def test_averaged_weights_are_those_of_the_library_and_end_with_the_same_bits():
    parameters, others = make_parameters(), make_parameters()
    optimizer, library = ScheduleFreeAdam()(parameters), ScheduleFreeAdam()(others)
    for x in (optimizer, library):
        run_updates(x, range(5))
    trained = [p.detach().clone() for p in parameters]
    library.eval()
    with use_averaged_weights(optimizer):
        assert all(torch.equal(a, b) for a, b in zip(parameters, others, strict=True))
        assert not torch.equal(parameters[0], trained[0])
    assert all(torch.equal(a, b) for a, b in zip(parameters, trained, strict=True))


def test_other_optimizers_have_no_averaged_weights():
    parameters = make_parameters()
    optimizer = Adam()(parameters)
    run_updates(optimizer, range(2))
    before = parameters[0].detach().clone()
    with use_averaged_weights(optimizer):
        assert torch.equal(parameters[0], before)
