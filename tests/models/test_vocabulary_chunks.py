"""Rows of logits in C: the same as in torch, whoever their neighbours are."""

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from grupo.inference.sampling_params import Sampling
from grupo.kernels import native
from grupo.kernels.log_softmax import logp_and_entropy

SIZES = [1, 2, 7, 255, 256, 257, 1000]  # of vocabularies; blocks have 256
ENDS = [0.0, 2.0**-54, 0.3, 0.5, 1 - 2.0**-53, 1.0]

pytestmark = pytest.mark.skipif(
    native.library(torch.float64) is None, reason="there is no compiler here"
)


def rows(size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Logits of 30 tokens."""
    return 3 * torch.randn(30, size, dtype=dtype)


def said(x: Tensor, temperature: float) -> list[Tensor]:
    """Log-probabilities, entropies, and the slopes of a sum that weighs every row differently."""
    x = x.clone().requires_grad_()
    token = torch.arange(len(x)) * 7 % x.shape[1]
    logp, entropy = logp_and_entropy(x, token, temperature)
    weight = torch.linspace(-1, 2, len(x), dtype=x.dtype)
    return [logp, entropy, *torch.autograd.grad((weight * (logp - 0.3 * entropy)).sum(), x)]


@pytest.fixture
def without(monkeypatch):
    """Calls a function as if there were no compiler."""

    def call(function, *told):
        with monkeypatch.context() as here:
            here.setattr(native, "library", lambda dtype: None)
            return function(*told)

    return call


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_likelihoods_are_those_of_torch(size, temperature, without):
    x = rows(size)
    for mine, yours in zip(said(x, temperature), without(said, x, temperature), strict=True):
        torch.testing.assert_close(mine, yours, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_in_float32_likelihoods_are_those_of_float64_but_for_rounding(size):
    x = rows(size, torch.float32)
    for mine, exact in zip(said(x, 0.7), said(x.double(), 0.7), strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_slopes_are_those_of_small_steps(temperature):
    x, token = rows(9)[:4].requires_grad_(), torch.tensor([0, 8, 3, 3])

    def again(x):  # a gradient is had once: for each it is worked out anew
        return checkpoint(logp_and_entropy, x, token, temperature, use_reentrant=False)

    assert torch.autograd.gradcheck(again, x)


def test_small_probabilities_are_as_exact_as_large_ones():
    z = torch.linspace(0, 700, 5000, dtype=torch.float64)
    x = torch.stack([torch.zeros_like(z), -z], 1).requires_grad_()
    logp, _ = logp_and_entropy(x, torch.zeros_like(z).long())
    (slope,) = torch.autograd.grad(logp.sum(), x)  # of log(1 / (1 + exp(-z)))
    torch.testing.assert_close(-slope[:, 1], 1 / (1 + z.exp()), rtol=1e-13, atol=0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_a_walk_from_0_to_1_draws_every_token_where_it_begins(size, temperature):
    x, u = rows(size)[:1], (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    token, logp = Sampling(temperature).sample(x.expand(len(u), -1), u)
    p = (x[0] / temperature).softmax(-1)
    begins = p.cumsum(-1) - p
    assert (begins[token] <= u + 1e-12).all()
    assert (u <= (begins + p)[token] + 1e-12).all()
    torch.testing.assert_close(logp, p[token].log(), rtol=0, atol=1e-12)


def test_torch_draws_the_same_tokens(without):
    x, u = 2 * torch.randn(2000, 700), torch.rand(2000, dtype=torch.float64)
    token, logp = Sampling(0.9).sample(x, u)
    theirs, their_logp = without(Sampling(0.9).sample, x, u)
    assert (token != theirs).sum() <= 1  # where u is within rounding of where a token begins
    same = token == theirs
    torch.testing.assert_close(logp[same], their_logp[same], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("u", ENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_cannot_be_said_is_never_drawn(u, dtype):
    x = rows(1000, dtype)
    x[torch.rand(x.shape) < 0.9] = -torch.inf
    x[:10, :300] = x[10:20, -300:] = -torch.inf  # a whole block at the beginning, at the end
    x[20] = -torch.inf
    x[20, 555] = 0.0
    token, logp = Sampling().sample(x, torch.full((len(x),), u))
    assert x.gather(1, token[:, None]).isfinite().all()
    assert logp.isfinite().all()
    assert (token[20], logp[20]) == (555, 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_underflows_is_never_drawn(dtype):
    x = torch.full((2, 600), -800.0, dtype=dtype)
    x[0, 1] = x[1, 400] = 0.0
    for u in ENDS:
        token, logp = Sampling().sample(x, torch.full((2,), u))
        assert (token.tolist(), logp.tolist()) == ([1, 400], [0.0, 0.0])


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_is_worked_out_alike_whoever_its_neighbours_are(threads, dtype):
    x, u = rows(1001, dtype), torch.rand(30)
    alone = [_drawn_and_said(x[i : i + 1], u[i : i + 1]) for i in range(30)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = _drawn_and_said(x, u)
    finally:
        torch.set_num_threads(before)
    for every, one in zip(together, zip(*alone, strict=True), strict=True):
        assert torch.equal(every, torch.cat(one))


def _drawn_and_said(x: Tensor, u: Tensor) -> list[Tensor]:
    leaf, token = x.clone().requires_grad_(), torch.full((len(x),), 5)
    logp, entropy = logp_and_entropy(leaf, token, 0.7)
    slopes = torch.autograd.grad((logp - 0.3 * entropy).sum(), leaf)
    return [*Sampling(0.7).sample(x, u), logp, entropy, *slopes]


def test_the_gradient_takes_the_place_of_logits_that_nobody_else_has():
    leaf = rows(7).requires_grad_()
    token = torch.zeros(30, dtype=torch.long)
    for logits, given in ((leaf, False), (leaf[:], False), (2 * leaf, True)):
        before = logits.detach().clone()
        (slope,) = torch.autograd.grad(logp_and_entropy(logits, token)[0].sum(), logits)
        assert (slope.data_ptr() == logits.data_ptr()) == given
        assert torch.equal(logits, before) != given


def test_a_function_that_needs_the_logits_it_has_said_is_refused():
    x = rows(7).requires_grad_()
    logp, _ = logp_and_entropy(x.tanh(), torch.zeros(30, dtype=torch.long))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logp.sum().backward()


def test_logits_that_are_no_numbers_are_not_hidden():
    x = rows(300)
    x[0, 299] = torch.nan
    _, logp = Sampling().sample(x, torch.rand(30))
    assert logp.isnan().tolist() == [True] + [False] * 29
    assert said(x, 1.0)[0].isnan().tolist() == [True] + [False] * 29
