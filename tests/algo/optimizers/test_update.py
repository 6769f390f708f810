import pytest
import torch
from torch import nn

from grupo.algo.optimizers import Adam
from grupo.algo.optimizers.state import optimizer_tensors
from grupo.algo.optimizers.update import optimizer_step


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
