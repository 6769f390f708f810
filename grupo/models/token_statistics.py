"""Signals of tokens from hidden states, computed in chunks of bounded logits."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import log
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from grupo.algo.divergences_full import forward_kl, jsd, reverse_kl
from grupo.core.signal_names import split_name
from grupo.inference.sampling_params import Sampling
from grupo.kernels.hidden_states import HiddenStates, Scores
from grupo.kernels.lm_head import LogitsHead
from grupo.kernels.log_softmax import logp_and_entropy

# logits computed at once, 128 MiB in float32: few chunks, so few sums of gradients
LOGITS_PER_CHUNK = 1 << 25
GPU_BYTES_PER_LOGIT = 256  # of a GPU's memory, for each logit computed at once: 2^29 for 141 GB
# logits kept for the backward pass instead of being recomputed, 512 MiB in float32
MAX_SAVED_LOGITS = 1 << 27
ONE_PASS_SIGNALS: tuple[str, ...] = "logp", "entropy"  # computed in one pass over the logits


def logits_per_chunk_of(device: torch.device) -> int:
    """Logits computed at once on a device: those of a large GPU keep it busy with one product."""
    if device.type != "cuda":
        return LOGITS_PER_CHUNK
    fitting = torch.cuda.get_device_properties(device).total_memory // GPU_BYTES_PER_LOGIT
    return max(LOGITS_PER_CHUNK, 1 << fitting.bit_length() - 1)


def logp_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Log-probability of each token."""
    return logp.gather(1, token[:, None])[:, 0]


def entropy_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Entropy of each token's distribution, in nats; truncated tokens contribute 0."""
    return -(logp.exp() * logp.masked_fill(logp.isneginf(), 0.0)).sum(-1)


def collision_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Probability that two samples are equal: sum over v of pi(v)^2."""
    return (2 * logp).exp().sum(-1)


def self_certainty_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """KL(uniform || pi) over the tokens that are not truncated, in nats.

    Kang et al., arXiv:2502.18581, eq. 9.
    """
    allowed = ~logp.isneginf()
    count = allowed.sum(-1)
    return -logp.masked_fill(~allowed, 0.0).sum(-1) / count - count.to(logp).log()


def top1_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """1 where no token is likelier than the given one, otherwise 0."""
    return (logp_of(logp, token) >= logp.amax(-1)).to(logp)


def top_entropy(logp: Float[Tensor, "m V"], k: int) -> Float[Tensor, "m"]:
    """-sum p log p over the k likeliest tokens, in nats; of fewer tokens over all."""
    top = logp.topk(min(k, logp.shape[1])).values
    return -(top.exp() * top.masked_fill(top.isneginf(), 0.0)).sum(-1)


def top_mass(logp: Float[Tensor, "m V"], k: int) -> Float[Tensor, "m"]:
    """Probability of the k likeliest tokens together."""
    return logp.topk(min(k, logp.shape[1])).values.exp().sum(-1)


def entropy_top10_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """-sum p log p over the 10 likeliest tokens, in nats. Shi et al., arXiv:2410.11677."""
    return top_entropy(logp, 10)


def mass_top10_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Probability of the 10 likeliest tokens together. Shi et al., arXiv:2410.11677."""
    return top_mass(logp, 10)


def top2_margin_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Difference of the two largest probabilities; 1 is certain. Wang et al., arXiv:2505.23727."""
    top = logp.topk(min(2, logp.shape[1])).values.exp()
    return top[:, 0] - top[:, 1:].sum(-1)


TOKEN_SIGNALS = {
    "logp": logp_of,
    "entropy": entropy_of,
    "collision": collision_of,
    "self_certainty": self_certainty_of,
    "entropy_top10": entropy_top10_of,
    "mass_top10": mass_top10_of,
    "top1": top1_of,
    "top2_margin": top2_margin_of,
}
DIVERGENCES = {"reverse_kl": reverse_kl, "forward_kl": forward_kl, "jsd": jsd}


@dataclass(frozen=True)
class TokenDistributions:
    """Distributions of M tokens, as hidden states and the head that makes logits of them.

    Args:
        hidden: last hidden states.
        token: the tokens that were sampled.
        head: computes logits of hidden states.
        sampling: temperature and truncation.
    """

    hidden: HiddenStates
    token: Int[Tensor, "M"]
    head: LogitsHead
    sampling: Sampling

    def logp(self) -> Float[Tensor, "M V"]:
        """Log-probabilities of the whole vocabulary."""
        return self.sampling(self.head(self.hidden.values), self.token).log_softmax(-1)

    def compute_signals(self, names: Collection[str]) -> dict[str, Float[Tensor, "M"]]:
        """The signals in `names` of each token."""
        return token_signals(self, names)

    def scale_temperature(self, factor: float) -> "TokenDistributions":
        """The distributions at `factor` times their temperature."""
        return replace(self, sampling=self.sampling.adjust(factor))

    def with_context(
        self, context: Callable[[], AbstractContextManager[Any]]
    ) -> "TokenDistributions":
        """The distributions, whose logits are computed within a context manager."""
        return replace(self, head=HeadInContext(context, self.head))

    def split(self, size: int) -> "list[TokenDistributions]":
        """Chunks of `size` tokens."""
        pairs = zip(self.hidden.values.split(size), self.token.split(size), strict=True)
        return [replace(self, hidden=HiddenStates(x), token=token) for x, token in pairs]


@dataclass(frozen=True)
class HeadInContext:
    """A head that runs within a context manager."""

    context: Callable[[], AbstractContextManager[Any]]
    head: LogitsHead

    def __call__(self, hidden: Tensor) -> Tensor:
        with self.context():
            return self.head(hidden)


def token_signals(
    distributions: TokenDistributions,
    names: Collection[str] = ("logp",),
    other_distributions: Mapping[str, TokenDistributions] = {},
    logits_per_chunk: int = 0,
) -> dict[str, Float[Tensor, "M"]]:
    """Signals of each token by name; gradients flow to `distributions` only.

    Logits are recomputed in the backward pass, unless all signals need one pass over the logits
    and few logits have to be saved.

    Args:
        distributions: the policy's distributions.
        names: signals to compute; `jsd@ref` compares with `other_distributions["ref"]`.
        other_distributions: distributions of auxiliary models for the same tokens.
        logits_per_chunk: logits of each model in memory at once; 0: as the device's memory allows.
    """
    one_pass = _needs_one_pass(distributions, other_distributions, names)
    if one_pass and (scores := _fused_scores(distributions)):
        signals = dict(zip(ONE_PASS_SIGNALS, scores, strict=True))
        return {name: signals[name] for name in names}
    hidden = distributions.hidden.values
    with torch.no_grad():
        vocab_size = distributions.head(hidden[:1]).shape[-1]
    size = max(1, (logits_per_chunk or logits_per_chunk_of(hidden.device)) // vocab_size)
    models = (distributions, *other_distributions.values())
    chunks = [
        (own, dict(zip(other_distributions, others, strict=True)))
        for own, *others in zip(*(model.split(size) for model in models), strict=True)
    ]
    saved = one_pass and len(hidden) * vocab_size <= MAX_SAVED_LOGITS
    compute = _chunk_signals if len(chunks) == 1 or saved else _checkpointed_signals
    values = zip(*(compute(own, others, names) for own, others in chunks), strict=True)
    return dict(zip(names, map(torch.cat, values), strict=True))


@torch.no_grad()
def disagreement(
    distributions: TokenDistributions, column: Int[Tensor, "M"], group_size: int
) -> Float[Tensor, "M"]:
    """Divergence of a group's rows from their mean at each column, in nats, equal for all rows.

    mean_i sum_v k3 between log pi_i and the mean of the log-probabilities, whose difference is
    clamped to 11; a row that has ended counts as uniform. TW-GRPO, Dang et al., arXiv:2505.24718.

    Args:
        distributions: those of a group's tokens.
        column: of each token, on the CPU.
        group_size: number of rows, also of those that have ended.
    """
    device = distributions.hidden.values.device
    values = torch.zeros(len(column), device=device)
    order = column.argsort(stable=True)
    counts = column[order].unique_consecutive(return_counts=True)[1].tolist()
    for here in order.to(device).split(counts):
        hidden = HiddenStates(distributions.hidden.values[here])
        logp = replace(distributions, hidden=hidden, token=distributions.token[here]).logp()
        logp = logp.clamp(min=-50.0)  # truncated tokens are -inf
        uniform = torch.full_like(logp[:1], -log(logp.shape[1]))
        ended = uniform.expand(group_size - len(logp), -1)
        rows = torch.cat([logp, ended])
        diff = (rows.mean(0) - rows).clamp(-11.0, 11.0)
        values[here] = (diff.exp() - diff - 1).sum(-1).mean().to(values)
    return values


def _fused_scores(distributions: TokenDistributions) -> Scores | None:
    temperature = distributions.sampling.temperature
    return distributions.hidden.score(distributions.head, distributions.token, temperature)


def _checkpointed_signals(
    distributions: TokenDistributions,
    other_distributions: Mapping[str, TokenDistributions],
    names: Collection[str],
) -> tuple[Tensor, ...]:
    def compute(hidden: Tensor) -> tuple[Tensor, ...]:
        own = replace(distributions, hidden=HiddenStates(hidden))
        return _chunk_signals(own, other_distributions, names)

    return checkpoint(compute, distributions.hidden.values, use_reentrant=False)


def _needs_one_pass(
    distributions: TokenDistributions,
    other_distributions: Mapping[str, TokenDistributions],
    names: Collection[str],
) -> bool:
    """Whether one pass over the logits computes all signals."""
    return (
        not other_distributions
        and set(names) <= {*ONE_PASS_SIGNALS}
        and not distributions.sampling.truncates
    )


def _chunk_signals(
    distributions: TokenDistributions,
    other_distributions: Mapping[str, TokenDistributions],
    names: Collection[str],
) -> tuple[Tensor, ...]:
    if _needs_one_pass(distributions, other_distributions, names):
        logits = distributions.head(distributions.hidden.values)
        pair = logp_and_entropy(logits, distributions.token, distributions.sampling.temperature)
        signals = dict(zip(ONE_PASS_SIGNALS, pair, strict=True))
        return tuple(signals[name] for name in names)
    logp = distributions.logp()
    with torch.no_grad():
        other_logp = {name: other.logp() for name, other in other_distributions.items()}
    values = list[Tensor]()
    for name in names:
        signal, model = split_name(name)
        if model:
            values.append(DIVERGENCES[signal](logp, other_logp[model]))
        else:
            values.append(TOKEN_SIGNALS[signal](logp, distributions.token))
    return tuple(values)
