"""C kernels over rows of logits match torch and do not depend on the other rows."""

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from grupo.inference.sampling_params import Sampling
from grupo.kernels import native
from grupo.kernels.log_softmax import logp_and_entropy

SIZES = [1, 2, 7, 255, 256, 257, 1000]  # vocabulary sizes; a block has 256 tokens
ENDS = [0.0, 2.0**-54, 0.3, 0.5, 1 - 2.0**-53, 1.0]

pytestmark = pytest.mark.skipif(
    native.library(torch.float64) is None, reason="there is no compiler here"
)


def rows(size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Logits of 30 tokens."""
    return 3 * torch.randn(30, size, dtype=dtype)


def values_and_gradients(x: Tensor, temperature: float) -> list[Tensor]:
    """Log-probabilities, entropies, and gradients of a sum with another weight per row."""
    x = x.clone().requires_grad_()
    token = torch.arange(len(x)) * 7 % x.shape[1]
    logp, entropy = logp_and_entropy(x, token, temperature)
    weight = torch.linspace(-1, 2, len(x), dtype=x.dtype)
    return [logp, entropy, *torch.autograd.grad((weight * (logp - 0.3 * entropy)).sum(), x)]


@pytest.fixture
def without_compiler(monkeypatch):
    """Calls a function as if there were no compiler."""

    def call(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(native, "library", lambda dtype: None)
            return function(*args)

    return call


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logp_and_entropy_match_torch(size, temperature, without_compiler):
    x = rows(size)
    expected_values = without_compiler(values_and_gradients, x, temperature)
    for actual, expected in zip(values_and_gradients(x, temperature), expected_values, strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_float32_matches_float64_to_rounding(size):
    x = rows(size, torch.float32)
    for actual, exact in zip(
        values_and_gradients(x, 0.7), values_and_gradients(x.double(), 0.7), strict=True
    ):
        torch.testing.assert_close(actual.double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_gradients_match_finite_differences(temperature):
    x, token = rows(9)[:4].requires_grad_(), torch.tensor([0, 8, 3, 3])

    def recomputed(x):  # one backward pass per forward pass
        return checkpoint(logp_and_entropy, x, token, temperature, use_reentrant=False)

    assert torch.autograd.gradcheck(recomputed, x)


def test_gradients_of_small_probabilities_are_exact():
    z = torch.linspace(0, 700, 5000, dtype=torch.float64)
    x = torch.stack([torch.zeros_like(z), -z], 1).requires_grad_()
    logp, _ = logp_and_entropy(x, torch.zeros_like(z).long())
    (gradient,) = torch.autograd.grad(logp.sum(), x)  # of log(1 / (1 + exp(-z)))
    torch.testing.assert_close(-gradient[:, 1], 1 / (1 + z.exp()), rtol=1e-13, atol=0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampling_inverts_the_cumulative_distribution(size, temperature):
    x, u = rows(size)[:1], (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    token, logp = Sampling(temperature).sample(x.expand(len(u), -1), u)
    p = (x[0] / temperature).softmax(-1)
    begins = p.cumsum(-1) - p
    assert (begins[token] <= u + 1e-12).all()
    assert (u <= (begins + p)[token] + 1e-12).all()
    torch.testing.assert_close(logp, p[token].log(), rtol=0, atol=1e-12)


def test_torch_samples_the_same_tokens(without_compiler):
    x, u = 2 * torch.randn(2000, 700), torch.rand(2000, dtype=torch.float64)
    token, logp = Sampling(0.9).sample(x, u)
    expected, expected_logp = without_compiler(Sampling(0.9).sample, x, u)
    assert (token != expected).sum() <= 1  # where u is within rounding of where a token begins
    same = token == expected
    torch.testing.assert_close(logp[same], expected_logp[same], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("u", ENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_truncated_tokens_are_never_sampled(u, dtype):
    x = rows(1000, dtype)
    x[torch.rand(x.shape) < 0.9] = -torch.inf
    x[:10, :300] = x[10:20, -300:] = -torch.inf  # a whole block at either end
    x[20] = -torch.inf
    x[20, 555] = 0.0
    token, logp = Sampling().sample(x, torch.full((len(x),), u))
    assert x.gather(1, token[:, None]).isfinite().all()
    assert logp.isfinite().all()
    assert (token[20], logp[20]) == (555, 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_that_underflow_are_never_sampled(dtype):
    x = torch.full((2, 600), -800.0, dtype=dtype)
    x[0, 1] = x[1, 400] = 0.0
    for u in ENDS:
        token, logp = Sampling().sample(x, torch.full((2,), u))
        assert (token.tolist(), logp.tolist()) == ([1, 400], [0.0, 0.0])


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_do_not_depend_on_the_other_rows(threads, dtype):
    x, u = rows(1001, dtype), torch.rand(30)
    alone = [_samples_and_gradients(x[i : i + 1], u[i : i + 1]) for i in range(30)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = _samples_and_gradients(x, u)
    finally:
        torch.set_num_threads(before)
    for batched, single in zip(together, zip(*alone, strict=True), strict=True):
        assert torch.equal(batched, torch.cat(single))


def _samples_and_gradients(x: Tensor, u: Tensor) -> list[Tensor]:
    leaf, token = x.clone().requires_grad_(), torch.full((len(x),), 5)
    logp, entropy = logp_and_entropy(leaf, token, 0.7)
    gradients = torch.autograd.grad((logp - 0.3 * entropy).sum(), leaf)
    return [*Sampling(0.7).sample(x, u), logp, entropy, *gradients]


def test_gradient_reuses_the_memory_of_temporary_logits():
    leaf = rows(7).requires_grad_()
    token = torch.zeros(30, dtype=torch.long)
    for logits, is_reused in ((leaf, False), (leaf[:], False), (2 * leaf, True)):
        before = logits.detach().clone()
        (gradient,) = torch.autograd.grad(logp_and_entropy(logits, token)[0].sum(), logits)
        assert (gradient.data_ptr() == logits.data_ptr()) == is_reused
        assert torch.equal(logits, before) != is_reused


def test_backward_through_reused_logits_raises():
    x = rows(7).requires_grad_()
    logp, _ = logp_and_entropy(x.tanh(), torch.zeros(30, dtype=torch.long))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logp.sum().backward()


def test_nan_logits_give_nan():
    x = rows(300)
    x[0, 299] = torch.nan
    _, logp = Sampling().sample(x, torch.rand(30))
    assert logp.isnan().tolist() == [True] + [False] * 29
    assert values_and_gradients(x, 1.0)[0].isnan().tolist() == [True] + [False] * 29
