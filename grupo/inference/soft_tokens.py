"""Soft thinking: mixtures of token embeddings, sampled with Gumbel noise.

SofT-GRPO, Zheng et al., 2025 (arXiv:2511.06411).
"""

from collections.abc import Sequence
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from grupo.core.component import component
from grupo.core.ranges import PositiveFloat, PositiveInt, PositiveProbability

# noise is clamped to this range
NOISE_MIN = -1.5
NOISE_MAX = 3.0
MIN_LOGP = -3.0  # less likely tokens do not count in the likelihood of a mixture

# a token, or the tokens of a mixture with their scores
TokenOrMixture = int | tuple[tuple[int, ...], tuple[float, ...]]


@component
class SoftThinkingConfig:
    """Soft steps before an answer, each a mixture of the embeddings of likely tokens.

    Args:
        max_soft_steps: the most soft steps of an answer.
        end_token: soft thinking ends with a step of which this token has the largest score.
        top_k: number of tokens that are mixed.
        top_p: keeps, of these, the fewest whose probabilities sum to top_p.
        gumbel_temperature: the weights of a mixture are softmax(score / gumbel_temperature).
    """

    max_soft_steps: PositiveInt = 16
    end_token: str = "</think>"
    top_k: PositiveInt = 5
    top_p: PositiveProbability = 0.95
    gumbel_temperature: PositiveFloat = 0.1

    def sample(
        self, logits: Float[Tensor, "m V"], noise: Float[Tensor, "m k"]
    ) -> tuple[Int[Tensor, "m k"], Float[Tensor, "m k"]]:
        """The tokens of a step and their scores u = log p + g, -inf where truncated."""
        p, token = logits.softmax(-1).topk(noise.shape[1])
        truncated = p.cumsum(-1) - p >= self.top_p
        logp = p.masked_fill(truncated, 0.0).log().log_softmax(-1)
        return token, logp + noise.clamp(NOISE_MIN, NOISE_MAX)

    def mix_embeddings(
        self, embedding: nn.Module, token: Int[Tensor, "N L k"], score: Float[Tensor, "N L k"]
    ) -> Float[Tensor, "N L H"]:
        """The embeddings of mixtures, weighted by softmax(score / gumbel_temperature)."""
        weight = (score / self.gumbel_temperature).softmax(-1)
        return torch.einsum("nlk,nlkh->nlh", weight, embedding(token))


def pad_soft_tokens(
    rows: Sequence[Sequence[TokenOrMixture]], top_k: int
) -> tuple[Int[Tensor, "N L k"], Float[Tensor, "N L k"]]:
    """Tokens and scores of right-padded rows; a single token is a mixture of one.

    >>> token, score = pad_soft_tokens([[7, ((3, 4), (0.5, -0.5))]], top_k=2)
    >>> token.tolist(), score.tolist()
    ([[[7, 0], [3, 4]]], [[[0.0, -inf], [0.5, -0.5]]])
    """
    width = max(map(len, rows))
    padded = [[*row, *[0] * (width - len(row))] for row in rows]
    mixtures = [[_as_mixture(item, top_k - 1) for item in row] for row in padded]
    token = torch.tensor([[tokens for tokens, _ in row] for row in mixtures], dtype=torch.long)
    return token, torch.tensor([[scores for _, scores in row] for row in mixtures])


def _as_mixture(item: TokenOrMixture, padding: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    if isinstance(item, int):
        return (item, *[0] * padding), (0.0, *[-inf] * padding)
    return item


def gumbel(u: Tensor) -> Tensor:
    """Gumbel noise at u in (0, 1)."""
    return -(-u.log()).log()


def soft_logp_and_entropy(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m k"], score: Float[Tensor, "m k"]
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Log-likelihood of soft steps, and entropy over the mixed tokens, in nats.

    The log-likelihood is the mean of -e - exp(-e), e = clamp(u - log p, -1.5, 3), over the tokens
    with log p > -3: the log-density of the Gumbel noise that gives these scores.
    """
    truncated = score.isneginf()
    logp = logits.gather(1, token).masked_fill(truncated, -inf).log_softmax(-1)
    counted = ~truncated & (logp > MIN_LOGP)
    finite_logp = logp.masked_fill(truncated, 0.0)
    e = (score.masked_fill(truncated, 0.0) - finite_logp).clamp(NOISE_MIN, NOISE_MAX)
    density = torch.where(counted, -e - (-e).exp(), 0.0)
    entropy = -(logp.exp() * finite_logp).sum(-1)
    return density.sum(-1) / counted.sum(-1).clamp(min=1), entropy
