"""From hidden states to log-probabilities, never more than a bounded chunk of logits at a time."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from grupo.piece import piece

CHUNK = 1 << 24  # logits alive at once: 64 MiB in float32

Head = Callable[[Float[Tensor, "m H"]], Float[Tensor, "m V"]]


@piece
class Sampling:
    """The distribution that is sampled from, and trained: the model's, reshaped, cut, renormalised.

    `temperature` divides the logits; then `top_k` keeps the k likeliest (0: all), `top_p` the
    fewest whose probabilities reach p, `min_p` those at least p times as likely as the likeliest.
    Greedy decoding is `top_k=1`.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0

    def __call__(self, logits: Float[Tensor, "m V"], keep: Int[Tensor, "m"]) -> Tensor:
        """Logits of the distribution, -inf where cut; the tokens in `keep` are never cut.

        A token that was drawn stays in the support when the policy has since moved; on policy it is
        there anyway.
        """
        logits = logits.float() / self.temperature
        cut = self._cut(logits.detach())
        return (
            logits
            if cut is None
            else logits.masked_fill(cut.scatter(1, keep[:, None], False), -torch.inf)
        )

    def draw(self, logits: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> tuple[Tensor, Tensor]:
        """One token for each row by inverse CDF at `u` in (0, 1), and its log-probability."""
        logits = logits.float() / self.temperature
        cut = self._cut(logits)
        logp = (logits if cut is None else logits.masked_fill(cut, -torch.inf)).log_softmax(-1)
        cdf = logp.exp().cumsum(-1)
        total = cdf[:, -1]
        where = torch.minimum(u.to(cdf) * total, torch.nextafter(total, torch.zeros_like(total)))
        token = torch.searchsorted(cdf, where[:, None], right=True)
        return token[:, 0], logp.gather(1, token)[:, 0]

    def _cut(self, logits: Tensor) -> Tensor | None:
        """Where the distribution is cut to 0; None if it is not."""
        cut = None
        if 0 < self.top_k < logits.shape[-1]:
            order = logits.argsort(dim=-1, descending=True, stable=True)
            cut = torch.ones_like(logits, dtype=torch.bool).scatter(
                1, order[:, : self.top_k], False
            )
            logits = logits.masked_fill(cut, -torch.inf)
        if self.top_p < 1:
            p, order = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
            beyond = p.cumsum(-1) - p >= self.top_p  # the likeliest is never beyond
            cut = beyond.scatter(1, order, beyond) | (False if cut is None else cut)
            logits = logits.masked_fill(cut, -torch.inf)
        if self.min_p > 0:
            p = logits.softmax(-1)
            cut = (p < self.min_p * p.amax(-1, keepdim=True)) | (False if cut is None else cut)
        return cut


def logp_and_entropy(
    hidden: Float[Tensor, "M H"], token: Int[Tensor, "M"], head: Head, sampling: Sampling
) -> tuple[Tensor, Tensor]:
    """Log-probability of each token, and the entropy (nats) where it was drawn, (M,) each.

    At most `CHUNK` logits exist at a time, forward and backward: chunks are computed again for the
    gradient.
    """

    def chunk(hidden: Tensor, token: Tensor) -> Tensor:
        logp = sampling(head(hidden), token).log_softmax(-1)
        p = logp.exp()
        entropy = -(p * logp.masked_fill(p == 0, 0.0)).sum(-1)
        return torch.stack([logp.gather(1, token[:, None])[:, 0], entropy])

    with torch.no_grad():
        vocabulary = head(hidden[:1]).shape[-1] if len(hidden) else 1
    size = max(1, CHUNK // vocabulary)
    pairs = list(zip(hidden.split(size), token.split(size), strict=True))
    if len(pairs) == 1:
        both = chunk(hidden, token)
    else:
        both = torch.cat([checkpoint(chunk, h, t, use_reentrant=False) for h, t in pairs], 1)
    return both[0], both[1]
