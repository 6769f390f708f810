import pytest
import torch
from torch import nn

from grupo.algo.optimizer import Adam, optimizer_step, optimizer_tensors, restore_optimizer
from grupo.storage import safetensors


def make_parameters(seed: int = 0) -> list[nn.Parameter]:
    random = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=random)) for shape in ((3, 4), (5,))]


def run_updates(optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Run updates whose gradients depend on the step and the weights."""
    parameters = optimizer.param_groups[0]["params"]
    for step in steps:
        sum((p.sin() * (step + 1)).sum() for p in parameters).backward()
        optimizer_step(optimizer, learning_rate=0.1 / (step + 1), max_grad_norm=1.0)


def test_first_adam_update_is_the_learning_rate_times_the_gradient_sign():
    weight = nn.Parameter(torch.tensor([1.0, -1.0]))
    weight.grad = torch.tensor([0.3, -0.4])  # m / sqrt(v) is the gradient's sign
    numbers = optimizer_step(Adam(eps=0.0)([weight]), learning_rate=0.25, max_grad_norm=100.0)
    assert weight.tolist() == [0.75, -0.75]
    assert numbers == {
        "grad_norm": 0.5,  # 3-4-5
        "grad_nonfinite": 0.0,
        "update/relative_norm": pytest.approx(0.25),  # 1 and -1 moved by 0.25 each
        "update/changed_frac": 1.0,
        "update/cos_neg_grad": pytest.approx(0.7 / (0.5 * 2**0.5)),  # (1, -1) and (0.3, -0.4)
    }
    assert weight.grad is None


def test_update_norm_is_measured_on_matrices_only():
    matrix, vector = nn.Parameter(torch.tensor([[3.0, 4.0]])), nn.Parameter(torch.ones(5))
    matrix.grad, vector.grad = torch.tensor([[2.0, 0.0]]), torch.ones(5)
    numbers = optimizer_step(
        Adam(eps=1e-12)([matrix, vector]), learning_rate=0.5, max_grad_norm=100.0
    )
    assert numbers["update/relative_norm"] == pytest.approx(
        0.5 / 5
    )  # of (3, 4), norm 5, one entry changed
    assert numbers["update/changed_frac"] == 1 / 2


def test_sampled_entries_of_a_large_matrix_are_not_one_column():
    square = nn.Parameter(torch.zeros(64, 64))
    square.grad = torch.zeros(64, 64)
    square.grad[:, 5] = 1.0  # one of 64 columns
    numbers = optimizer_step(Adam()([square]), learning_rate=0.1, max_grad_norm=100.0)
    assert numbers["update/changed_frac"] == 1 / 64  # a stride of 65 goes down the diagonal


def test_gradient_ascent_has_descent_cosine_minus_1():
    weight = nn.Parameter(torch.tensor([[1.0, -1.0]]))
    weight.grad = torch.tensor([[0.3, -0.4]])
    numbers = optimizer_step(
        torch.optim.SGD([weight], maximize=True), learning_rate=1.0, max_grad_norm=100.0
    )
    assert numbers["update/cos_neg_grad"] == pytest.approx(-1.0)  # SGD goes along the gradient


def test_zero_update_has_no_descent_cosine():
    weight = nn.Parameter(torch.tensor([[1.0, -1.0]]))
    weight.grad = torch.tensor([[0.3, -0.4]])
    assert "update/cos_neg_grad" not in optimizer_step(
        Adam()([weight]), learning_rate=0.0, max_grad_norm=100.0
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nonfinite_gradient_is_counted_and_skipped(bad):
    weight = nn.Parameter(torch.tensor([1.0]))
    optimizer = Adam()([weight])
    weight.grad = torch.tensor([bad])
    numbers = optimizer_step(optimizer, learning_rate=0.1, max_grad_norm=1.0)
    assert (numbers["grad_nonfinite"], numbers["update/changed_frac"]) == (1.0, 0.0)
    assert weight.tolist() == [1.0]
    assert optimizer_tensors(optimizer) == {}


def test_restored_optimizer_continues_bit_identically(tmp_path):
    adam, uninterrupted, first = Adam(weight_decay=0.1), make_parameters(), make_parameters()
    run_updates(adam(uninterrupted), range(7))
    stopped = adam(first)
    run_updates(stopped, range(3))
    path = tmp_path / "optimizer.safetensors"
    path.write_bytes(b"".join(safetensors.file_chunks(optimizer_tensors(stopped))))
    second = [nn.Parameter(p.detach().clone()) for p in first]
    resumed = adam(second)
    restore_optimizer(resumed, safetensors.load_tensors(path))
    run_updates(resumed, range(3, 7))
    assert all(torch.equal(a, b) for a, b in zip(uninterrupted, second, strict=True))


def test_optimizer_without_its_state_takes_different_updates():
    adam, uninterrupted, second = Adam(), make_parameters(), make_parameters()
    run_updates(adam(uninterrupted), range(7))
    run_updates(adam(second), range(3))
    run_updates(adam(second), range(3, 7))
    assert not torch.equal(uninterrupted[0], second[0])


def test_optimizer_tensors_are_named_by_parameter_index():
    optimizer = Adam()(make_parameters())
    run_updates(optimizer, range(2))
    state = optimizer_tensors(optimizer)
    assert set(state) == {
        f"{i}.{slot}" for i in (0, 1) for slot in ("step", "exp_avg", "exp_avg_sq")
    }
    assert state["0.exp_avg"].shape == (3, 4)
    assert state["1.step"].item() == 2


def test_optimizer_without_updates_restores_from_empty_state():
    optimizer, other = Adam()(make_parameters()), Adam()(make_parameters())
    restore_optimizer(optimizer, optimizer_tensors(optimizer))
    run_updates(optimizer, range(2))
    run_updates(other, range(2))
    pairs = zip(*(o.param_groups[0]["params"] for o in (optimizer, other)), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
