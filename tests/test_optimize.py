import pytest
import torch
from torch import nn

from grupo.optimize import Adam, descend, restore, state_of
from grupo.storage import tensorfile


def weights(seed: int = 0) -> list[nn.Parameter]:
    random = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=random)) for shape in ((3, 4), (5,))]


def walk(optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Updates whose gradients depend on the step and the weights."""
    parameters = optimizer.param_groups[0]["params"]
    for step in steps:
        sum((p.sin() * (step + 1)).sum() for p in parameters).backward()
        descend(optimizer, lr=0.1 / (step + 1), max_norm=1.0)


def test_the_first_update_of_adam_is_the_learning_rate_against_the_gradient_s_sign():
    weight = nn.Parameter(torch.tensor([1.0, -1.0]))
    weight.grad = torch.tensor([0.3, -0.4])  # m / sqrt(v) is the gradient's sign
    numbers = descend(Adam(eps=0.0)([weight]), lr=0.25, max_norm=100.0)
    assert weight.tolist() == [0.75, -0.75]
    assert numbers == {"gradient/norm": 0.5, "gradient/nonfinite": 0.0}  # 3-4-5
    assert weight.grad is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_counted_and_not_followed(bad):
    weight = nn.Parameter(torch.tensor([1.0]))
    optimizer = Adam()([weight])
    weight.grad = torch.tensor([bad])
    assert descend(optimizer, lr=0.1, max_norm=1.0)["gradient/nonfinite"] == 1.0
    assert weight.tolist() == [1.0]
    assert state_of(optimizer) == {}


def test_an_optimizer_that_was_saved_goes_on_with_the_same_bits(tmp_path):
    adam, whole, first = Adam(decay=0.1), weights(), weights()
    walk(adam(whole), range(7))
    stopped = adam(first)
    walk(stopped, range(3))
    path = tmp_path / "optimizer.safetensors"
    path.write_bytes(b"".join(tensorfile.chunks(state_of(stopped))))
    second = [nn.Parameter(p.detach().clone()) for p in first]
    resumed = adam(second)
    restore(resumed, tensorfile.load(path))
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
    state = state_of(optimizer)
    assert set(state) == {
        f"{i}.{slot}" for i in (0, 1) for slot in ("step", "exp_avg", "exp_avg_sq")
    }
    assert state["0.exp_avg"].shape == (3, 4)
    assert state["1.step"].item() == 2


def test_an_optimizer_that_never_moved_is_restored_from_nothing():
    optimizer, moved = Adam()(weights()), Adam()(weights())
    restore(optimizer, state_of(optimizer))
    walk(optimizer, range(2))
    walk(moved, range(2))
    pairs = zip(*(o.param_groups[0]["params"] for o in (optimizer, moved)), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
