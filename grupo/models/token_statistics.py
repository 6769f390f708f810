"""From hidden states to what is said of tokens, a bounded chunk of logits at a time."""

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
from grupo.kernels.backend import TokenScorer
from grupo.kernels.log_softmax import logp_and_entropy

LOGITS_PER_CHUNK = (
    1 << 25
)  # logits worked on at once: 128 MiB in float32; few chunks, few sums of gradients
MAX_SAVED_LOGITS = (
    1 << 27
)  # logits that are kept for the gradient rather than worked out again: 512 MiB
ONE_PASS_SIGNALS: tuple[str, ...] = "logp", "entropy"  # what one pass over the logits says

LogitsHead = Callable[[Float[Tensor, "m H"]], Float[Tensor, "m V"]]


def logp_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Log-probability of each token."""
    return logp.gather(1, token[:, None])[:, 0]


def entropy_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """Entropy of the distribution each token is drawn from, in nats; what is cut adds nothing."""
    return -(logp.exp() * logp.masked_fill(logp.isneginf(), 0.0)).sum(-1)


def collision_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """The probability that two draws are the same: sum over v of pi(v)^2."""
    return (2 * logp).exp().sum(-1)


def self_certainty_of(logp: Float[Tensor, "m V"], token: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """KL(uniform || pi) over what is not cut, in nats. Kang et al., arXiv:2502.18581, eq. 9."""
    kept = ~logp.isneginf()
    count = kept.sum(-1)
    return -logp.masked_fill(~kept, 0.0).sum(-1) / count - count.to(logp).log()


TOKEN_SIGNALS = {
    "logp": logp_of,
    "entropy": entropy_of,
    "collision": collision_of,
    "self_certainty": self_certainty_of,
}
DIVERGENCES = {"reverse_kl": reverse_kl, "forward_kl": forward_kl, "jsd": jsd}


@dataclass(frozen=True)
class TokenDistributions:
    """What tokens were drawn from: the last hidden states and what turns them into a choice."""

    hidden: Float[Tensor, "M H"]
    token: Int[Tensor, "M"]
    head: LogitsHead
    sampling: Sampling
    token_scorer: TokenScorer | None = (
        None  # what says how likely the tokens are without logits to look at
    )

    def logp(self) -> Float[Tensor, "M V"]:
        """Log-probabilities of all that could have been drawn."""
        return self.sampling(self.head(self.hidden), self.token).log_softmax(-1)

    def compute_signals(self, names: Collection[str]) -> dict[str, Float[Tensor, "M"]]:
        """The measures in `names` of each token."""
        return token_signals(self, names)

    def scale_temperature(self, factor: float) -> "TokenDistributions":
        """The same tokens as if the temperature were `factor` times as high."""
        return replace(self, sampling=self.sampling.adjust(factor))

    def with_context(
        self, context: Callable[[], AbstractContextManager[Any]]
    ) -> "TokenDistributions":
        """The same, logits said within a context."""
        return replace(self, head=_HeadInContext(context, self.head), token_scorer=None)

    def split(self, size: int) -> "list[TokenDistributions]":
        """The same, `size` tokens at a time."""
        pairs = zip(self.hidden.split(size), self.token.split(size), strict=True)
        return [replace(self, hidden=h, token=token, token_scorer=None) for h, token in pairs]


@dataclass(frozen=True)
class _HeadInContext:
    """A head that is used within a context."""

    context: Callable[[], AbstractContextManager[Any]]
    head: LogitsHead

    def __call__(self, hidden: Tensor) -> Tensor:
        with self.context():
            return self.head(hidden)


def token_signals(
    distributions: TokenDistributions,
    names: Collection[str] = ("logp",),
    other_distributions: Mapping[str, TokenDistributions] = {},
    logits_per_chunk: int = LOGITS_PER_CHUNK,
) -> dict[str, Float[Tensor, "M"]]:
    """The measures in `names` of each token; `jsd@ref` compares with others["ref"].

    At most `chunk` logits of each speaker are worked on at a time. For the gradient, which flows to
    `spoken` alone, they are worked out again unless one pass over them says all and few are kept.
    """
    plain = _needs_one_pass(distributions, other_distributions, names)
    if plain and distributions.token_scorer:
        told = distributions.hidden, distributions.token, distributions.sampling.temperature
        said = dict(zip(ONE_PASS_SIGNALS, distributions.token_scorer(*told), strict=True))
        return {name: said[name] for name in names}
    with torch.no_grad():
        vocabulary = distributions.head(distributions.hidden[:1]).shape[-1]
    size = max(1, logits_per_chunk // vocabulary)
    parts = [
        (one, dict(zip(other_distributions, rest, strict=True)))
        for one, *rest in zip(
            *(s.split(size) for s in (distributions, *other_distributions.values())), strict=True
        )
    ]
    kept = plain and len(distributions.hidden) * vocabulary <= MAX_SAVED_LOGITS
    run = _chunk_signals if len(parts) == 1 or kept else _checkpointed_signals
    chunks = zip(*(run(one, rest, names) for one, rest in parts), strict=True)
    return dict(zip(names, map(torch.cat, chunks), strict=True))


@torch.no_grad()
def disagreement(
    distributions: TokenDistributions, column_index: Int[Tensor, "M"], group_size: int
) -> Float[Tensor, "M"]:
    """How far the `rows` of a group are from their mean at each place, in nats, the same for all.

    mean_i sum_v k3 between log pi_i and the mean of the log-probabilities, at most 11 apart; a row
    that is over already is uniform there. TW-GRPO, Dang et al., arXiv:2505.24718.
    """
    said = torch.zeros(len(column_index), device=distributions.hidden.device)
    for column in column_index.unique():
        here = column_index == column
        logp = replace(
            distributions, hidden=distributions.hidden[here], token=distributions.token[here]
        ).logp()
        logp = logp.clamp(min=-50.0)  # what is cut is far, not infinitely far
        over = torch.full_like(logp[:1], -log(logp.shape[1])).expand(group_size - len(logp), -1)
        every = torch.cat([logp, over])
        off = (every.mean(0) - every).clamp(-11.0, 11.0)
        said[here] = (off.exp() - off - 1).sum(-1).mean().to(said)
    return said


def _checkpointed_signals(
    distributions: TokenDistributions,
    other_distributions: Mapping[str, TokenDistributions],
    names: Collection[str],
) -> tuple[Tensor, ...]:
    def said(hidden: Tensor) -> tuple[Tensor, ...]:
        return _chunk_signals(replace(distributions, hidden=hidden), other_distributions, names)

    return checkpoint(said, distributions.hidden, use_reentrant=False)  # pyright: ignore


def _needs_one_pass(
    distributions: TokenDistributions,
    other_distributions: Mapping[str, TokenDistributions],
    names: Collection[str],
) -> bool:
    """Does one pass over the logits say all?"""
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
        logits = distributions.head(distributions.hidden)
        logp, entropy = logp_and_entropy(
            logits, distributions.token, distributions.sampling.temperature
        )
        said = dict(zip(ONE_PASS_SIGNALS, (logp, entropy), strict=True))
        return tuple(said[name] for name in names)
    logp = distributions.logp()
    with torch.no_grad():
        theirs = {who: other.logp() for who, other in other_distributions.items()}
    pairs = [split_name(name) for name in names]
    return tuple(
        DIVERGENCES[signal](logp, theirs[who])
        if who
        else TOKEN_SIGNALS[signal](logp, distributions.token)
        for signal, who in pairs
    )
