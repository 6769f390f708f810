"""Soft thoughts: mixtures of a few tokens' embeddings, drawn by Gumbel noise.

SofT-GRPO, Zheng et al. (arXiv:2511.06411).
"""

from collections.abc import Sequence
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from grupo.core.component import component
from grupo.core.validation import Constraint

NOISE_MIN, NOISE_MAX = -1.5, 3.0  # between which noise is kept
MIN_LOGP = -3.0  # entries of smaller log-probability are not asked how likely their noise is

TokenOrMixture = (
    int | tuple[tuple[int, ...], tuple[float, ...]]
)  # a token; tokens that are mixed, by scores


@component
class SoftThinkingConfig:
    """At most `limit` soft steps before an answer, until the likeliest of one is the `end` token.

    Each mixes the `kept` likeliest tokens, of these the fewest whose probabilities reach `top_p`,
    in proportion to exp(score / `heat`).
    """

    max_soft_steps: int = 16
    end_token: str = "</think>"
    top_k: int = 5
    top_p: float = 0.95
    gumbel_temperature: float = 0.1

    @property
    def constraints(self) -> Sequence[Constraint]:
        """What its numbers may be."""
        return [
            ("limit", self.max_soft_steps, self.max_soft_steps >= 1, "1 or more"),
            ("kept", self.top_k, self.top_k >= 1, "1 or more"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0, at most 1"),
            ("heat", self.gumbel_temperature, self.gumbel_temperature > 0, "above 0"),
        ]

    def sample(
        self, logits: Float[Tensor, "m V"], noise: Float[Tensor, "m k"]
    ) -> tuple[Int[Tensor, "m k"], Float[Tensor, "m k"]]:
        """The tokens of a step and their scores u = log p + g; -inf where cut."""
        p, token = logits.softmax(-1).topk(noise.shape[1])
        cut = p.cumsum(-1) - p >= self.top_p
        logp = p.masked_fill(cut, 0.0).log().log_softmax(-1)
        return token, logp + noise.clamp(NOISE_MIN, NOISE_MAX)

    def mix_embeddings(
        self, embedding: nn.Module, token: Int[Tensor, "N L k"], score: Float[Tensor, "N L k"]
    ) -> Float[Tensor, "N L H"]:
        """What is read: the tokens' embeddings, each as much as its score says."""
        share = (score / self.gumbel_temperature).softmax(-1)
        return torch.einsum("nlk,nlkh->nlh", share, embedding(token))


def pad_soft_tokens(
    rows: Sequence[Sequence[TokenOrMixture]], top_k: int
) -> tuple[Int[Tensor, "N L k"], Float[Tensor, "N L k"]]:
    """The tokens of right-padded rows of parts, and their scores; a word is mixed with nothing.

    >>> token, score = pad_soft_tokens([[7, ((3, 4), (0.5, -0.5))]], top_k=2)
    >>> token.tolist(), score.tolist()
    ([[[7, 0], [3, 4]]], [[[0.0, -inf], [0.5, -0.5]]])
    """
    rest = top_k - 1
    width = max(map(len, rows))
    laid = [[_as_mixture(part, rest) for part in (*row, *[0] * (width - len(row)))] for row in rows]
    token = torch.tensor([[part[0] for part in row] for row in laid], dtype=torch.long)
    return token, torch.tensor([[part[1] for part in row] for row in laid])


def _as_mixture(item: TokenOrMixture, padding: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return ((item, *[0] * padding), (0.0, *[-inf] * padding)) if isinstance(item, int) else item


def gumbel(u: Tensor) -> Tensor:
    """Gumbel noise at u in (0, 1)."""
    return -(-u.log()).log()


def soft_logp_and_entropy(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m k"], score: Float[Tensor, "m k"]
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Log-likelihood of soft steps, and the entropy over the tokens that they mix, in nats.

    mean over tokens with log p > -3 of -e - exp(-e), e = clamp(u - log p, -1.5, 3): the density of
    the noise that would give these scores.
    """
    cut = score.isneginf()
    logp = logits.gather(1, token).masked_fill(cut, -inf).log_softmax(-1)
    asked = ~cut & (logp > MIN_LOGP)
    held = logp.masked_fill(cut, 0.0)
    e = (score.masked_fill(cut, 0.0) - held).clamp(NOISE_MIN, NOISE_MAX)
    density = torch.where(asked, -e - (-e).exp(), 0.0)
    entropy = -(logp.exp() * held).sum(-1)
    return density.sum(-1) / asked.sum(-1).clamp(min=1), entropy
