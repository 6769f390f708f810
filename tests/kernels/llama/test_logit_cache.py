"""What the head says of tokens is worked out once, while they are sampled, or exactly again."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from grupo.inference.sampling_params import Sampling
from grupo.kernels import native
from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.logit_cache import CachedTokenScorer, LogitCache
from grupo.kernels.prefix_cache import NOT_CACHED
from tests.helpers.activation_recall import assert_alike, learned, recalled, sampled
from tests.helpers.llama_backends import body_of, by_modules, policy_of, worked

V, WIDTH, RECORDS = 37, 300, 20  # panels are of 16 or 8 words, and 256 deep


def heard(room: int = RECORDS) -> LogitCache:
    """Room for logits of so many tokens."""
    c = native.library(torch.float64)
    if c is None:
        pytest.skip("there is no compiler here")
    one = LogitCache(c, ModelShape(threads=2), ScratchBuffers(), RECORDS)
    one.max_elements = room * V
    return one


def numbers(*shape: int) -> Tensor:
    """Some, the same for a shape."""
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64)


def slopes(said: Sequence[Tensor], *of: Tensor) -> list[Tensor]:
    """What was said, and the gradients of weighing each number differently."""
    weight = numbers(2, len(said[0]))
    return [*said, *torch.autograd.grad((torch.stack(list(said)) * weight).sum(), of)]


def by_formula(hidden: Tensor, weight: Tensor, token: Tensor, temperature: float) -> list[Tensor]:
    logp = (hidden @ weight.T / temperature).log_softmax(-1)
    return [logp.gather(1, token[:, None])[:, 0], -(logp.exp() * logp).sum(-1)]


@pytest.fixture
def told() -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, weights, tokens."""
    hidden, weight = numbers(RECORDS, WIDTH).requires_grad_(), numbers(V, WIDTH) / 10
    return hidden, weight.requires_grad_(), torch.randint(0, V, (RECORDS,))


KNOWN: dict[str, Callable[[], Tensor]] = {
    "all": lambda: torch.arange(RECORDS),
    "some": lambda: torch.arange(3, 12),
    "none": lambda: torch.arange(0),
}


@pytest.mark.parametrize("chunk", [1 << 20, 3 * V], ids=["at once", "three at a time"])
@pytest.mark.parametrize("room", [RECORDS, 12, 0])
@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_entropies_and_slopes_are_those_of_the_formula(
    told, monkeypatch, temperature, known, room, chunk
):
    monkeypatch.setattr("grupo.kernels.llama.logit_cache.CHUNK", chunk)
    (hidden, weight, token), one, before = told, heard(room), known()
    if len(before):
        one.logits(weight, hidden[before].detach(), before)
    used, record = one.used, torch.randperm(RECORDS)
    said = CachedTokenScorer(one, weight, record)(hidden[record], token, temperature)
    ours = slopes(said, hidden, weight)
    assert one.used == used  # what was kept for the way back is given back
    theirs = slopes(by_formula(hidden[record], weight, token, temperature), hidden, weight)
    for own, right in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [1, 6, 7, 13])
def test_what_is_said_are_products(told, count):
    hidden, weight, _ = told
    one, some = heard(), hidden[:count].detach()
    for record in (torch.full((count,), NOT_CACHED), torch.arange(count).flip(0)):
        said = one.logits(weight, some, record)
        torch.testing.assert_close(said, some @ weight.T, rtol=1e-12, atol=1e-12)
    assert one.used == count
    assert torch.equal(one.cached_rows(weight)[one.logit_index[:count].flip(0)], said)


@pytest.mark.parametrize("frozen", [0, 1], ids=["hidden states", "weights"])
def test_what_needs_no_slope_is_given_none(told, frozen):
    told[frozen].requires_grad_(False)
    hidden, weight, token = told
    said = CachedTokenScorer(heard(), weight, None)(hidden, token, 1.0)
    theirs = by_formula(hidden, weight, token, 1.0)
    of = told[1 - frozen]
    for own, right in zip(slopes(said, of), slopes(theirs, of), strict=True):
        torch.testing.assert_close(own, right, rtol=1e-10, atol=1e-10)


def test_without_a_gradient_nothing_is_kept(told):
    hidden, weight, token = told
    one = heard()
    with torch.no_grad():
        said = CachedTokenScorer(one, weight, None)(hidden, token, 1.0)
    assert one.used == 0
    torch.testing.assert_close(list(said), by_formula(hidden, weight, token, 1.0))


def test_two_that_wait_for_their_way_back_do_not_overwrite_each_other(told):
    hidden, weight, token = told
    one = heard(2 * RECORDS)
    said = [CachedTokenScorer(one, weight, None)(part, token, 1.0) for part in (hidden, 2 * hidden)]
    right = [by_formula(part, weight, token, 1.0) for part in (hidden, 2 * hidden)]
    for ours, theirs in zip(said, right, strict=True):
        own, other = slopes(ours, hidden, weight), slopes(theirs, hidden, weight)
        torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-10)


def test_a_way_back_can_be_gone_twice(told):
    hidden, weight, token = told
    one = heard()
    said = CachedTokenScorer(one, weight, None)(hidden, token, 1.0)
    total = torch.stack(list(said)).sum()
    first = torch.autograd.grad(total, weight, retain_graph=True)
    one.logits(weight, 3 * hidden.detach(), torch.arange(RECORDS))  # where it was kept
    assert torch.equal(*first, *torch.autograd.grad(total, weight))


def test_what_waits_for_logits_of_another_engine_is_refused(told):
    hidden, weight, token = told
    one = heard()
    said = CachedTokenScorer(one, weight, None)(hidden, token, 1.0)
    one.clear([])
    with pytest.raises(RuntimeError, match="another engine has begun"):
        said[0].sum().backward()


def test_where_there_is_no_room_logits_are_worked_out_again(llama):
    batch = sampled(llama)
    found = recalled(llama, batch)
    body_of(llama).logit_cache.max_elements = 0
    body_of(llama).logit_cache.clear(body_of(llama).logit_cache.weights_version)
    with worked() as counts:
        again = learned(llama, batch)
    assert counts == {"head": 2}  # there, and back
    assert_alike(found, again)


def test_after_an_update_they_are_those_of_the_new_weights(llama):
    batch = sampled(llama)
    with torch.no_grad():
        llama.plain.lm_head.weight.mul_(1.1)
    with worked() as counts:
        found = learned(llama, batch)
    assert counts == {"forward": 1, "head": 1}
    assert_alike(found, learned(by_modules(llama), batch))


def test_a_head_that_somebody_watches_is_called(llama):
    batch, called = sampled(llama), []
    llama.plain.lm_head.register_forward_hook(lambda *_: called.append(1))
    with worked() as counts:
        learned(llama, batch)
    assert called
    assert not counts


def test_of_what_is_cut_logits_are_looked_at(folders):
    policy = policy_of(folders["llama"], sampling=Sampling(top_p=0.8))
    batch = sampled(policy)
    assert_alike(recalled(policy, batch), learned(by_modules(policy), batch))
