"""The native backend computes the formulas, and what the Hugging Face modules compute."""

import pytest
import torch

from grupo.kernels.backend import HFBackend
from tests.helpers.llama_backends import (
    FAMILIES,
    backend_of,
    count_calls,
    hidden_and_grads,
    hidden_of,
    model_of,
    native_backend_of,
    num_threads,
    relative_error,
    shared_rows,
)
from tests.helpers.llama_formulas import hidden_states
from tests.helpers.packed_rows import pack_rows

ONE_ROW = [[5, 9, 5]]  # fewer tokens than threads


@pytest.mark.parametrize("last", [1, 2, 99])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("rows", [shared_rows(), ONE_ROW], ids=["shared", "one"])
@pytest.mark.parametrize("family", FAMILIES)
def test_float64_hidden_states_and_gradients_match_the_formulas(family, rows, count, last):
    model = model_of(FAMILIES[family]()).double()
    backend = native_backend_of(model)
    with num_threads(count), count_calls() as counts:
        actual = hidden_and_grads(model, hidden_of(backend, rows, torch.float64, last))
    formula = torch.cat([hidden_states(model, row)[-last:] for row in rows])
    expected = hidden_and_grads(model, formula)
    assert counts["forward"] == 1
    assert all(x < 1e-10 for x in map(relative_error, actual, expected))


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_hidden_states_and_gradients_match_the_hf_modules(family):
    model = model_of(FAMILIES[family]())
    backends = native_backend_of(model), HFBackend(model)
    actual, expected = (
        hidden_and_grads(model, hidden_of(backend, shared_rows(), torch.float32))
        for backend in backends
    )
    assert all(x < 1e-5 for x in map(relative_error, actual, expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("last", [1, 99])
def test_hidden_states_are_equal_with_and_without_gradient(dtype, last):
    model = model_of(FAMILIES["qwen3"]()).to(dtype)
    backend = native_backend_of(model)
    with torch.no_grad():
        without_grad = hidden_of(backend, shared_rows(), dtype, last)
    with_grad = hidden_of(backend, shared_rows(), dtype, last)
    assert torch.equal(without_grad, with_grad)
    assert with_grad.requires_grad > without_grad.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_any_memory_layout_are_accepted(dtype):
    model = model_of(FAMILIES["llama"]()).to(dtype)
    backend, grads = native_backend_of(model), []
    for total in (torch.Tensor.sum, lambda x: (x * torch.ones_like(x)).sum()):
        model.zero_grad()
        total(hidden_of(backend, shared_rows(), dtype)).backward()
        grads.append([p.grad.clone() for p in model.base_model.parameters()])
    assert all(map(torch.equal, *grads))


@pytest.mark.parametrize("make_backend", [native_backend_of, HFBackend])
def test_gradient_of_a_token_with_many_outputs_is_deterministic(make_backend):
    model = model_of(FAMILIES["llama"]())
    backend, packed, index = make_backend(model), pack_rows(ONE_ROW), torch.full((1 << 13,), 2)
    weight, grads = torch.randn(len(index), model.config.hidden_size), []
    with num_threads(4):
        for _ in range(8):
            model.zero_grad()
            (backend.evaluate(packed, index).values * weight).sum().backward()
            grads.append(model.base_model.norm.weight.grad.clone())
    assert all(torch.equal(grad, grads[0]) for grad in grads)


def test_second_order_gradient_raises(llama):
    x = llama.hf_model.get_input_embeddings().weight
    hidden = hidden_of(backend_of(llama), shared_rows(), torch.float32)
    (grad,) = torch.autograd.grad(hidden.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_backward_raises_after_weights_have_changed(llama):
    hidden = hidden_of(backend_of(llama), shared_rows(), torch.float32)
    with torch.no_grad():
        llama.hf_model.base_model.layers[0].mlp.up_proj.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        hidden.sum().backward()
