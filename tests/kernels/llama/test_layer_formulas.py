"""What lean bodies say and learn is what the formulas do, and what the modules do."""

import pytest
import torch

from grupo.kernels.backend import HFBackend
from tests.helpers.llama_backends import (
    FAMILIES,
    body_of,
    hidden_of,
    leaned,
    made,
    off,
    rows,
    taught,
    threads,
    worked,
)
from tests.helpers.llama_formulas import hidden
from tests.helpers.packed_rows import laid

ONE = [[5, 9, 5]]  # fewer tokens than there are threads


@pytest.mark.parametrize("last", [1, 2, 99])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("said", [rows(), ONE], ids=["rows", "one"])
@pytest.mark.parametrize("family", FAMILIES)
def test_in_float64_it_is_what_the_formulas_say_and_teach(family, said, count, last):
    model = made(FAMILIES[family]()).double()
    body = leaned(model)
    with threads(count), worked() as counts:
        ours = taught(model, hidden_of(body, said, torch.float64, last))
    theirs = taught(model, torch.cat([hidden(model, row)[-last:] for row in said]))
    assert counts["forward"] == 1
    assert all(x < 1e-10 for x in map(off, ours, theirs))


@pytest.mark.parametrize("family", FAMILIES)
def test_in_float32_it_is_what_the_modules_say_and_teach(family):
    model = made(FAMILIES[family]())
    both = leaned(model), HFBackend(model)
    ours, theirs = (taught(model, hidden_of(body, rows(), torch.float32)) for body in both)
    assert all(x < 1e-5 for x in map(off, ours, theirs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("last", [1, 99])
def test_without_a_gradient_it_says_the_same(dtype, last):
    model = made(FAMILIES["qwen3"]()).to(dtype)
    body = leaned(model)
    with torch.no_grad():
        said = hidden_of(body, rows(), dtype, last)
    again = hidden_of(body, rows(), dtype, last)
    assert torch.equal(said, again)
    assert again.requires_grad > said.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_slope_of_any_layout_is_taken(dtype):
    model = made(FAMILIES["llama"]()).to(dtype)
    body, grads = leaned(model), []
    for every in (torch.Tensor.sum, lambda x: (x * torch.ones_like(x)).sum()):
        model.zero_grad()
        every(hidden_of(body, rows(), dtype)).backward()
        grads.append([p.grad.clone() for p in model.base_model.parameters()])
    assert all(map(torch.equal, *grads))


@pytest.mark.parametrize("kind", [leaned, HFBackend])
def test_a_token_that_many_ask_for_has_the_same_slope_every_time(kind):
    model = made(FAMILIES["llama"]())
    body, packed, place = kind(model), laid(ONE), torch.full((1 << 13,), 2)
    weight, grads = torch.randn(len(place), model.config.hidden_size), []
    with threads(4):
        for _ in range(8):
            model.zero_grad()
            (body.forward_with_grad(packed, place)[0] * weight).sum().backward()
            grads.append(model.base_model.norm.weight.grad.clone())
    assert all(torch.equal(grad, grads[0]) for grad in grads)


def test_a_gradient_of_a_gradient_is_refused(llama):
    x = llama.plain.get_input_embeddings().weight
    said = hidden_of(body_of(llama), rows(), torch.float32)
    (slope,) = torch.autograd.grad(said.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_a_gradient_in_weights_that_have_changed_is_refused(llama):
    said = hidden_of(body_of(llama), rows(), torch.float32)
    with torch.no_grad():
        llama.plain.base_model.layers[0].mlp.up_proj.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        said.sum().backward()
