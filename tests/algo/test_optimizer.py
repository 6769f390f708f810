import pytest
import torch
from torch import nn

from grupo.algo.optimizer import Adam, optimizer_step, optimizer_tensors, restore_optimizer
from grupo.storage import safetensors


def weights(seed: int = 0) -> list[nn.Parameter]:
    random = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=random)) for shape in ((3, 4), (5,))]


def walk(optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Updates whose gradients depend on the step and the weights."""
    parameters = optimizer.param_groups[0]["params"]
    for step in steps:
        sum((p.sin() * (step + 1)).sum() for p in parameters).backward()
        optimizer_step(optimizer, learning_rate=0.1 / (step + 1), max_grad_norm=1.0)


def test_the_first_update_of_adam_is_the_learning_rate_against_the_gradient_s_sign():
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


@pytest.mark.parametrize("make", [Adam(), torch.optim.SGD], ids=["Adam", "SGD"])
def test_whoever_looks_sees_that_weights_have_changed(make):
    parameters = weights()
    before = [p._version for p in parameters]
    walk(make(parameters), range(1))
    assert all(p._version > v for p, v in zip(parameters, before, strict=True))


def test_how_far_an_update_goes_is_read_from_matrices_alone():
    matrix, vector = nn.Parameter(torch.tensor([[3.0, 4.0]])), nn.Parameter(torch.ones(5))
    matrix.grad, vector.grad = torch.tensor([[2.0, 0.0]]), torch.ones(5)
    numbers = optimizer_step(
        Adam(eps=1e-12)([matrix, vector]), learning_rate=0.5, max_grad_norm=100.0
    )
    assert numbers["update/relative_norm"] == pytest.approx(0.5 / 5)  # of 3-4-5 one number moved
    assert numbers["update/changed_frac"] == 1 / 2


def test_of_a_large_matrix_some_numbers_are_looked_at_and_not_one_column():
    square = nn.Parameter(torch.zeros(64, 64))
    square.grad = torch.zeros(64, 64)
    square.grad[:, 5] = 1.0  # of 64 columns one
    numbers = optimizer_step(Adam()([square]), learning_rate=0.1, max_grad_norm=100.0)
    assert numbers["update/changed_frac"] == 1 / 64  # a stride of 65 goes down the diagonal


def test_an_optimizer_that_goes_up_the_gradient_has_the_cosine_of_its_opposite():
    weight = nn.Parameter(torch.tensor([[1.0, -1.0]]))
    weight.grad = torch.tensor([[0.3, -0.4]])
    numbers = optimizer_step(
        torch.optim.SGD([weight], maximize=True), learning_rate=1.0, max_grad_norm=100.0
    )
    assert numbers["update/cos_neg_grad"] == pytest.approx(-1.0)  # SGD goes along the gradient


def test_of_weights_that_do_not_move_no_way_is_said():
    weight = nn.Parameter(torch.tensor([[1.0, -1.0]]))
    weight.grad = torch.tensor([[0.3, -0.4]])
    assert "update/cos_neg_grad" not in optimizer_step(
        Adam()([weight]), learning_rate=0.0, max_grad_norm=100.0
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_counted_and_not_followed(bad):
    weight = nn.Parameter(torch.tensor([1.0]))
    optimizer = Adam()([weight])
    weight.grad = torch.tensor([bad])
    numbers = optimizer_step(optimizer, learning_rate=0.1, max_grad_norm=1.0)
    assert (numbers["grad_nonfinite"], numbers["update/changed_frac"]) == (1.0, 0.0)
    assert weight.tolist() == [1.0]
    assert optimizer_tensors(optimizer) == {}


def test_an_optimizer_that_was_saved_goes_on_with_the_same_bits(tmp_path):
    adam, whole, first = Adam(weight_decay=0.1), weights(), weights()
    walk(adam(whole), range(7))
    stopped = adam(first)
    walk(stopped, range(3))
    path = tmp_path / "optimizer.safetensors"
    path.write_bytes(b"".join(safetensors.file_chunks(optimizer_tensors(stopped))))
    second = [nn.Parameter(p.detach().clone()) for p in first]
    resumed = adam(second)
    restore_optimizer(resumed, safetensors.load_tensors(path))
    walk(resumed, range(3, 7))
    assert all(torch.equal(a, b) for a, b in zip(whole, second, strict=True))


def test_an_optimizer_that_forgot_takes_another_way():
    adam, whole, second = Adam(), weights(), weights()
    walk(adam(whole), range(7))
    walk(adam(second), range(3))
    walk(adam(second), range(3, 7))
    assert not torch.equal(whole[0], second[0])


def test_what_it_remembers_is_named_by_the_parameter_s_place():
    optimizer = Adam()(weights())
    walk(optimizer, range(2))
    state = optimizer_tensors(optimizer)
    assert set(state) == {
        f"{i}.{slot}" for i in (0, 1) for slot in ("step", "exp_avg", "exp_avg_sq")
    }
    assert state["0.exp_avg"].shape == (3, 4)
    assert state["1.step"].item() == 2


def test_an_optimizer_that_never_moved_is_restored_from_nothing():
    optimizer, moved = Adam()(weights()), Adam()(weights())
    restore_optimizer(optimizer, optimizer_tensors(optimizer))
    walk(optimizer, range(2))
    walk(moved, range(2))
    pairs = zip(*(o.param_groups[0]["params"] for o in (optimizer, moved)), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
