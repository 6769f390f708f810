"""Fused log-probability and entropy match `log_softmax` in value and gradient."""

import pytest
import torch
from torch import Tensor

from grupo.kernels.log_softmax import at_least_float32, logp_and_entropy

pytestmark = pytest.mark.usefixtures("with_and_without_compiler")

TOKEN = torch.tensor([3, 0, 6, 2, 2])


def logits(spread: float = 2.0) -> Tensor:
    """Logits of five tokens, in float64."""
    return (spread * torch.randn(5, 7, dtype=torch.float64)).requires_grad_()


def by_definition(x: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    logp = (x / temperature).log_softmax(-1)
    plogp = torch.where(logp.isneginf(), 0.0, logp.exp() * logp.masked_fill(logp.isneginf(), 0.0))
    return logp.gather(1, TOKEN[:, None])[:, 0], -plogp.sum(-1)


def gradient(values: tuple[Tensor, Tensor], x: Tensor, of_logp: float, of_entropy: float) -> Tensor:
    """Gradient of a loss with another weight for each token."""
    weight = torch.linspace(-1, 2, len(x), dtype=values[0].dtype)
    return torch.autograd.grad((weight * (of_logp * values[0] + of_entropy * values[1])).sum(), x)[
        0
    ]


def assert_near(actual: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("spread", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.9])
def test_values_match_the_definition(temperature, spread):
    x = logits(spread)
    values = logp_and_entropy(x, TOKEN, temperature)
    for actual, expected in zip(values, by_definition(x, temperature), strict=True):
        assert_near(actual, expected)


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (-0.7, 0.3)])
@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.9])
def test_gradients_match_the_definition(temperature, weights):
    x = logits()
    actual = gradient(logp_and_entropy(x, TOKEN, temperature), x, *weights)
    expected = gradient(by_definition(x, temperature), x, *weights)
    assert expected.abs().max() > 0.1
    assert_near(actual, expected)


@pytest.mark.parametrize("which", [0, 1], ids=["logp", "entropy"])
def test_each_output_has_a_gradient_by_itself(which):
    x = logits()
    actual = torch.autograd.grad(logp_and_entropy(x, TOKEN)[which].sum(), x)[0]
    assert_near(actual, torch.autograd.grad(by_definition(x)[which].sum(), x)[0])


def test_gradients_match_finite_differences():
    x, step = logits(), 1e-6
    exact = gradient(logp_and_entropy(x, TOKEN, 0.8), x, 1.0, 0.5)
    weight, x = torch.linspace(-1, 2, 5, dtype=torch.float64), x.detach()
    for index in [(0, 3), (1, 5), (4, 2)]:
        ends = []
        for off in (step, -step):
            shifted = x.clone()
            shifted[index] += off
            logp, entropy = logp_and_entropy(shifted, TOKEN, 0.8)
            ends.append((weight * (logp + 0.5 * entropy)).sum())
        assert_near((ends[0] - ends[1]) / (2 * step), exact[index], 1e-8)


def test_second_backward_raises():
    x = logits()
    total = logp_and_entropy(x, TOKEN)[0].sum()
    torch.autograd.grad(total, x, retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(total, x)


def test_block_size_does_not_change_results(monkeypatch):
    x = logits()
    whole = *logp_and_entropy(x, TOKEN, 0.7), gradient(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5)
    monkeypatch.setattr("grupo.kernels.log_softmax.BLOCK_NUMEL", 14)  # two of five rows
    blocks = (
        *logp_and_entropy(x, TOKEN, 0.7),
        gradient(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5),
    )
    for expected, actual in zip(whole, blocks, strict=True):
        assert torch.equal(expected, actual)


def test_truncated_tokens_contribute_nothing():
    x = logits().detach()
    x[:, 1] = x[0, 4:] = -torch.inf
    x[3, torch.arange(7) != 2] = -torch.inf  # the sampled token is the only allowed one
    x.requires_grad_()
    values, definition = logp_and_entropy(x, TOKEN, 0.7), by_definition(x, 0.7)
    for actual, expected in zip(values, definition, strict=True):
        assert_near(actual, expected)
    assert (values[0][3], values[1][3]) == (0.0, 0.0)


def test_truncated_tokens_have_no_gradient_and_change_none():
    x = logits().detach()
    x[:, 1] = -torch.inf
    others = [0, 2, 3, 4, 5, 6]
    x_full, x_reduced = x.requires_grad_(), x.detach()[:, others].requires_grad_()
    full = gradient(logp_and_entropy(x_full, TOKEN, 0.7), x_full, 1.0, 0.5)
    reduced = gradient(
        logp_and_entropy(x_reduced, TOKEN - (TOKEN > 1).long(), 0.7), x_reduced, 1.0, 0.5
    )
    assert (full[:, 1] == 0).all()
    assert_near(full[:, others], reduced)


def test_truncated_token_has_logp_minus_infinity():
    x = logits().detach()
    x[0, TOKEN[0]] = -torch.inf
    logp, entropy = logp_and_entropy(x, TOKEN)
    assert logp[0].isneginf()
    assert entropy.isfinite().all()


def test_certain_token_has_no_entropy_and_no_gradient():
    x = torch.zeros(5, 7, dtype=torch.float64)
    x[torch.arange(5), TOKEN] = 800.0  # the others underflow
    x.requires_grad_()
    logp, entropy = logp_and_entropy(x, TOKEN)
    assert (logp == 0).all()
    assert (entropy == 0).all()
    assert (gradient((logp, entropy), x, 1.0, 1.0) == 0).all()


def test_uniform_logits_have_entropy_log_n():
    logp, entropy = logp_and_entropy(torch.full((5, 7), 3.0, dtype=torch.float64), TOKEN)
    seven = torch.tensor(7.0, dtype=torch.float64)
    assert_near(logp, -seven.log().expand(5))
    assert_near(entropy, seven.log().expand(5))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_bfloat16_logits_are_computed_in_float32(temperature):
    x = logits().detach().bfloat16().requires_grad_()
    exact = x.detach().double().requires_grad_()
    values = logp_and_entropy(x, TOKEN, temperature)
    definition = by_definition(exact, temperature)
    for actual, expected in zip(values, definition, strict=True):
        assert actual.dtype == torch.float32
        assert_near(actual.double(), expected, 2e-6)
    actual, expected = gradient(values, x, 1.0, 0.5), gradient(definition, exact, 1.0, 0.5)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.double(), expected, rtol=2**-8, atol=1e-6)


def test_inputs_are_not_modified():
    x = logits()
    before = x.detach().clone()
    gradient(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5)
    gradient(logp_and_entropy(x, TOKEN), x, 1.0, 0.5)
    assert torch.equal(x, before)


@pytest.mark.parametrize("shift", [0.0, 50.0, -50.0])
def test_common_offset_of_logits_costs_little_precision(shift):
    exact = logits().detach()
    x = (exact + shift).float()
    definition = by_definition(x.double())
    for actual, expected in zip(logp_and_entropy(x, TOKEN), definition, strict=True):
        assert_near(actual.double(), expected, 2e-5)


def test_at_least_float32():
    for dtype, wide in (("bfloat16", "float32"), ("float32", "float32"), ("float64", "float64")):
        assert at_least_float32(torch.zeros(1, dtype=getattr(torch, dtype))).dtype == getattr(
            torch, wide
        )
