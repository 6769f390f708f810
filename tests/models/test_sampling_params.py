"""Sampling parameters: truncation, sampling, and signals of the resulting distribution."""

from math import exp, log

import pytest
import torch
from torch import nn

from grupo.inference.sampling_params import MIN_TEMPERATURE, Sampling
from grupo.kernels.hidden_states import HiddenStates
from grupo.models.token_statistics import TokenDistributions, token_signals
from grupo.util.errors import ConfigError
from grupo.util.rng import uniform

pytestmark = pytest.mark.usefixtures("with_and_without_compiler")

# softmax is 0.5, 0.25, 0.125, 0.125
HALVES = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
MIXED = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()


def allowed_tokens(sampling: Sampling, logits: torch.Tensor) -> list[int]:
    return (~sampling.truncation_mask(logits / sampling.temperature))[0].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("sampling", "logits", "expected"),
    [
        (Sampling(), MIXED, [0, 1, 2, 3]),
        (Sampling(top_k=1), MIXED, [1]),
        (Sampling(top_k=3), MIXED, [1, 2, 3]),
        (Sampling(top_k=9), MIXED, [0, 1, 2, 3]),
        (Sampling(top_p=0.39), MIXED, [1]),
        (Sampling(top_p=0.41), MIXED, [1, 3]),
        (Sampling(top_p=0.69), MIXED, [1, 3]),
        (Sampling(top_p=0.71), MIXED, [1, 2, 3]),
        (Sampling(top_p=1e-6), MIXED, [1]),
        (Sampling(min_p=0.49), MIXED, [1, 2, 3]),  # 0.2 / 0.4 = 0.5
        (Sampling(min_p=0.51), MIXED, [1, 3]),
        (Sampling(min_p=0.99), MIXED, [1]),
        (Sampling(top_k=3, top_p=0.79), MIXED, [1, 2, 3]),  # 0.4 + 0.3 = 0.78 of those three
        (Sampling(top_k=3, top_p=0.77), MIXED, [1, 3]),
        (Sampling(temperature=0.5, top_p=0.81), MIXED, [1, 3]),  # squares: 1, 16, 4, 9 of 30
        (Sampling(temperature=0.5, top_p=0.85), MIXED, [1, 2, 3]),  # 25 / 30 = 0.83
    ],
)
def test_truncation_matches_the_definition(sampling, logits, expected):
    assert allowed_tokens(sampling, logits) == expected


def test_ties_keep_the_first_tokens():
    equal = torch.zeros(1, 5)
    assert allowed_tokens(Sampling(top_k=2), equal) == [0, 1]
    assert allowed_tokens(Sampling(top_p=0.5), equal) == [0, 1, 2]  # 0.2 + 0.2 < 0.5
    assert allowed_tokens(Sampling(min_p=0.9), equal) == [0, 1, 2, 3, 4]
    assert allowed_tokens(Sampling(top_k=3), HALVES) == [0, 1, 2]
    assert allowed_tokens(Sampling(top_k=2), torch.tensor([[1.0, 3.0, 1.0, 1.0]])) == [0, 1]


def test_rows_are_truncated_separately():
    truncated = Sampling(top_k=1).truncation_mask(torch.cat([MIXED, HALVES]))
    assert (~truncated).nonzero().tolist() == [[0, 1], [1, 0]]


def test_sampled_token_is_never_truncated():
    logits = Sampling(top_k=1)(MIXED, torch.tensor([2]))
    assert logits.isneginf().tolist() == [[True, False, False, True]]
    assert logits.log_softmax(-1)[0, 2].item() == pytest.approx(log(0.2 / 0.6))


def test_sampling_inverts_the_cumulative_distribution():
    u = torch.tensor([0.05, 0.15, 0.45, 0.55, 0.65, 0.75, 0.95])
    token, logp = Sampling().sample(MIXED.expand(7, 4), u)  # steps at 0.1, 0.5, 0.7
    assert token.tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert logp.exp().tolist() == pytest.approx([0.1, 0.4, 0.4, 0.2, 0.2, 0.3, 0.3])


def test_logp_is_renormalised_over_allowed_tokens():
    u = torch.tensor([0.01, 0.56, 0.58, 0.99])  # 0.4 and 0.3 of 0.7: a step at 0.571
    token, logp = Sampling(top_k=2).sample(MIXED.expand(4, 4), u)
    assert token.tolist() == [1, 1, 3, 3]
    assert logp.exp().tolist() == pytest.approx([4 / 7, 4 / 7, 3 / 7, 3 / 7])


def test_greedy_sampling_is_argmax_with_probability_one():
    logits = torch.randn(50, 30)
    token, logp = Sampling(top_k=1).sample(logits, torch.rand(50))
    assert token.tolist() == logits.argmax(-1).tolist()
    assert logp.tolist() == [0.0] * 50


def test_greedy_sampling_takes_the_first_of_ties():
    logits = torch.zeros(3, 1000)
    logits[0, [300, 700]] = logits[1, [999, 0]] = 1.0
    assert Sampling(top_k=1, top_p=0.5).sample(logits, torch.rand(3))[0].tolist() == [300, 0, 0]


@pytest.mark.parametrize("u", [0.0, 2.0**-54, 0.5, 1 - 2.0**-53, 1.0])
def test_ends_of_the_unit_interval_never_sample_truncated_tokens(u):
    logits = torch.randn(200, 64)
    for sampling in (Sampling(top_k=3), Sampling(top_p=0.3), Sampling(min_p=0.5), Sampling()):
        token, logp = sampling.sample(logits, torch.full((200,), u, dtype=torch.float64))
        assert not sampling.truncation_mask(logits).gather(1, token[:, None]).any()
        assert logp.isfinite().all()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(temperature=0.5), [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        (Sampling(top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9]),
    ],
)
def test_token_frequencies_match_probabilities(sampling, expected):
    key = torch.arange(40_000) * 977
    token, _ = sampling.sample(MIXED.expand(len(key), 4), uniform(key, torch.zeros_like(key)))
    share = (token.bincount(minlength=4) / len(key)).tolist()
    assert share == pytest.approx(expected, abs=0.01)  # four standard deviations: 4 / 2 / 200


def test_unlikely_tokens_are_sampled():
    logits = torch.tensor([0.0, *[-20.0] * 200_000])[None].expand(4, -1)
    likely = 1 / (1 + 200_000 * exp(-20))
    expected = torch.tensor([1, 777, 77_777, 200_000])  # probability 2e-9 each
    u = likely + (1 - likely) * (expected.double() - 0.5) / 200_000
    token, _ = Sampling().sample(logits, u)
    assert (token - expected).abs().max() <= 1


NAMES = ("logp", "entropy")


def head() -> nn.Linear:
    return nn.Linear(6, 11, bias=False)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, 0.8, 6, 0.01)])
@pytest.mark.parametrize("chunk", [1, 11, 40, 10_000])
def test_chunk_size_changes_neither_values_nor_gradients(chunk, sampling):
    output, token = head(), torch.arange(9)

    def values_and_gradients(chunk: int) -> list[torch.Tensor]:
        hidden = torch.linspace(-3, 3, 54).sin().view(9, 6).requires_grad_()
        signals = token_signals(
            TokenDistributions(HiddenStates(hidden), token, output, sampling),
            NAMES,
            logits_per_chunk=chunk,
        )
        loss = (signals["logp"] * torch.arange(9)).sum() + signals["entropy"].square().sum()
        gradients = torch.autograd.grad(loss, [hidden, output.weight])
        return [signals["logp"], signals["entropy"], *gradients]

    pairs = zip(values_and_gradients(chunk), values_and_gradients(1 << 24), strict=True)
    for chunked, whole in pairs:
        torch.testing.assert_close(chunked, whole)


def test_entropy_is_that_of_the_truncated_distribution():
    def halves(hidden: torch.Tensor) -> torch.Tensor:
        return HALVES.expand(len(hidden), 4)

    def entropy(sampling: Sampling) -> float:
        distributions = TokenDistributions(
            HiddenStates(torch.zeros(1, 2)), torch.tensor([0]), halves, sampling
        )
        return token_signals(distributions, ["entropy"])["entropy"].item()

    assert entropy(Sampling()) == pytest.approx(1.75 * log(2))  # 1/2 + 2/4 + 3/8 + 3/8 bits
    assert entropy(Sampling(top_k=2)) == pytest.approx(log(3) - 2 / 3 * log(2))  # 2/3, 1/3
    assert entropy(Sampling(top_k=1)) == 0.0


def test_only_requested_signals_are_computed():
    hidden, token = HiddenStates(torch.zeros(3, 6)), torch.arange(3)
    signals = token_signals(TokenDistributions(hidden, token, head(), Sampling()))
    assert list(signals) == ["logp"]
    assert signals["logp"].tolist() == pytest.approx([-log(11)] * 3)


def test_no_tokens_give_empty_signals():
    none = HiddenStates(torch.zeros(0, 6)), torch.zeros(0, dtype=torch.long)
    distributions = TokenDistributions(*none, head(), Sampling(0.5, 0.5))
    assert token_signals(distributions)["logp"].shape == (0,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0.0),
        ("temperature", -1.0),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_k", -1),
        ("min_p", -0.1),
        ("min_p", 1.0),
    ],
)
def test_invalid_parameters_raise_config_errors(field, value):
    with pytest.raises(ConfigError, match=rf"^Sampling.{field}: .* Allowed: "):
        Sampling(**{field: value})


@pytest.mark.parametrize("truncation", [{}, {"top_p": 0.9}, {"top_k": 3}, {"min_p": 0.1}])
def test_the_smallest_temperature_draws_the_likeliest_token_and_a_smaller_one_is_refused(
    truncation,
):
    logits = torch.tensor([[1.0, 50.0, -30.0, 2.0]])
    sampling = Sampling(MIN_TEMPERATURE, **truncation)
    token, logp = sampling.sample(logits, torch.tensor([0.7]))
    assert (token.item(), logp.item()) == (1, 0.0)
    with pytest.raises(ConfigError, match=r"Sampling\.temperature: 1e-40\. Allowed: 1e-30 or more"):
        Sampling(1e-40, **truncation)
