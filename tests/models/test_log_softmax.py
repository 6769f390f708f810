"""Log-probability and entropy in one pass are those of `log_softmax`, and so are their slopes."""

import pytest
import torch
from torch import Tensor

from grupo.kernels.log_softmax import at_least_float32, logp_and_entropy

pytestmark = pytest.mark.usefixtures("either_way")

TOKEN = torch.tensor([3, 0, 6, 2, 2])


def logits(spread: float = 2.0) -> Tensor:
    """Of five tokens, in float64."""
    return (spread * torch.randn(5, 7, dtype=torch.float64)).requires_grad_()


def by_definition(x: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    logp = (x / temperature).log_softmax(-1)
    plogp = torch.where(logp.isneginf(), 0.0, logp.exp() * logp.masked_fill(logp.isneginf(), 0.0))
    return logp.gather(1, TOKEN[:, None])[:, 0], -plogp.sum(-1)


def slope(said: tuple[Tensor, Tensor], x: Tensor, of_logp: float, of_entropy: float) -> Tensor:
    """Of a loss that weighs every token differently."""
    weight = torch.linspace(-1, 2, len(x), dtype=said[0].dtype)
    return torch.autograd.grad((weight * (of_logp * said[0] + of_entropy * said[1])).sum(), x)[0]


def assert_near(ours: Tensor, theirs: Tensor, off: float = 1e-12) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=off)


@pytest.mark.parametrize("spread", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.9])
def test_values_are_those_of_the_definition(temperature, spread):
    x = logits(spread)
    theirs = by_definition(x, temperature)
    for mine, yours in zip(logp_and_entropy(x, TOKEN, temperature), theirs, strict=True):
        assert_near(mine, yours)


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (-0.7, 0.3)])
@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.9])
def test_slopes_are_those_of_the_definition(temperature, weights):
    x = logits()
    mine = slope(logp_and_entropy(x, TOKEN, temperature), x, *weights)
    yours = slope(by_definition(x, temperature), x, *weights)
    assert yours.abs().max() > 0.1
    assert_near(mine, yours)


@pytest.mark.parametrize("which", [0, 1], ids=["logp", "entropy"])
def test_the_slope_of_one_needs_no_slope_of_the_other(which):
    x = logits()
    mine = torch.autograd.grad(logp_and_entropy(x, TOKEN)[which].sum(), x)[0]
    assert_near(mine, torch.autograd.grad(by_definition(x)[which].sum(), x)[0])


def test_slopes_are_slopes():
    x, step = logits(), 1e-6
    exact = slope(logp_and_entropy(x, TOKEN, 0.8), x, 1.0, 0.5)
    weight, x = torch.linspace(-1, 2, 5, dtype=torch.float64), x.detach()
    for place in [(0, 3), (1, 5), (4, 2)]:
        ends = []
        for off in (step, -step):
            moved = x.clone()
            moved[place] += off
            logp, entropy = logp_and_entropy(moved, TOKEN, 0.8)
            ends.append((weight * (logp + 0.5 * entropy)).sum())
        assert_near((ends[0] - ends[1]) / (2 * step), exact[place], 1e-8)


def test_a_second_gradient_of_the_same_is_refused():
    x = logits()
    said = logp_and_entropy(x, TOKEN)[0].sum()
    torch.autograd.grad(said, x, retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(said, x)


def test_many_blocks_say_what_one_says(monkeypatch):
    x = logits()
    whole = *logp_and_entropy(x, TOKEN, 0.7), slope(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5)
    monkeypatch.setattr("grupo.kernels.log_softmax.BLOCK_NUMEL", 14)  # two of five rows
    again = *logp_and_entropy(x, TOKEN, 0.7), slope(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5)
    for one, many in zip(whole, again, strict=True):
        assert torch.equal(one, many)


def test_what_cannot_be_said_adds_nothing():
    x = logits().detach()
    x[:, 1] = x[0, 4:] = -torch.inf
    x[3, torch.arange(7) != 2] = -torch.inf  # the one token that can be said is said
    x.requires_grad_()
    mine, yours = logp_and_entropy(x, TOKEN, 0.7), by_definition(x, 0.7)
    for ours, theirs in zip(mine, yours, strict=True):
        assert_near(ours, theirs)
    assert (mine[0][3], mine[1][3]) == (0.0, 0.0)


def test_what_cannot_be_said_has_no_slope_and_changes_none():
    x = logits().detach()
    x[:, 1] = -torch.inf
    others = [0, 2, 3, 4, 5, 6]
    among, alone = x.requires_grad_(), x.detach()[:, others].requires_grad_()
    toward = slope(logp_and_entropy(among, TOKEN, 0.7), among, 1.0, 0.5)
    without = slope(logp_and_entropy(alone, TOKEN - (TOKEN > 1).long(), 0.7), alone, 1.0, 0.5)
    assert (toward[:, 1] == 0).all()
    assert_near(toward[:, others], without)


def test_a_token_that_cannot_be_said_has_no_likelihood():
    x = logits().detach()
    x[0, TOKEN[0]] = -torch.inf
    logp, entropy = logp_and_entropy(x, TOKEN)
    assert logp[0].isneginf()
    assert entropy.isfinite().all()


def test_a_choice_that_is_certain_has_no_entropy_and_no_slope():
    x = torch.zeros(5, 7, dtype=torch.float64)
    x[torch.arange(5), TOKEN] = 800.0  # the others underflow
    x.requires_grad_()
    logp, entropy = logp_and_entropy(x, TOKEN)
    assert (logp == 0).all()
    assert (entropy == 0).all()
    assert (slope((logp, entropy), x, 1.0, 1.0) == 0).all()


def test_equals_have_the_entropy_of_their_number():
    logp, entropy = logp_and_entropy(torch.full((5, 7), 3.0, dtype=torch.float64), TOKEN)
    seven = torch.tensor(7.0, dtype=torch.float64)
    assert_near(logp, -seven.log().expand(5))
    assert_near(entropy, seven.log().expand(5))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_from_bfloat16_they_are_as_exact_as_from_the_same_numbers_in_float32(temperature):
    x = logits().detach().bfloat16().requires_grad_()
    exact = x.detach().double().requires_grad_()
    mine, yours = logp_and_entropy(x, TOKEN, temperature), by_definition(exact, temperature)
    for ours, theirs in zip(mine, yours, strict=True):
        assert ours.dtype == torch.float32
        assert_near(ours.double(), theirs, 2e-6)
    toward, slopes = slope(mine, x, 1.0, 0.5), slope(yours, exact, 1.0, 0.5)
    assert toward.dtype == torch.bfloat16
    torch.testing.assert_close(toward.double(), slopes, rtol=2**-8, atol=1e-6)


def test_inputs_are_left_alone():
    x = logits()
    before = x.detach().clone()
    slope(logp_and_entropy(x, TOKEN, 0.7), x, 1.0, 0.5)
    slope(logp_and_entropy(x, TOKEN), x, 1.0, 0.5)
    assert torch.equal(x, before)


@pytest.mark.parametrize("shift", [0.0, 50.0, -50.0])
def test_in_float32_what_all_logits_share_costs_little(shift):
    exact = logits().detach()
    x = (exact + shift).float()
    yours = by_definition(x.double())
    for ours, theirs in zip(logp_and_entropy(x, TOKEN), yours, strict=True):
        assert_near(ours.double(), theirs, 2e-5)


def test_widened_is_float32_at_least():
    for dtype, wide in (("bfloat16", "float32"), ("float32", "float32"), ("float64", "float64")):
        assert at_least_float32(torch.zeros(1, dtype=getattr(torch, dtype))).dtype == getattr(
            torch, wide
        )
