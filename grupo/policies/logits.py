"""From logits to the distribution that is sampled from, and trained."""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.piece import piece
from grupo.policies.checks import check


@piece
class Sampling:
    """The distribution that is sampled from, and trained: the model's, reshaped, cut, renormalised.

    `temperature` divides the logits; then `top_k` keeps the k likeliest (0: all), `top_p` the
    fewest whose probabilities reach p, `min_p` those at least p times as likely as the likeliest.
    Of equals, the first are the likelier. Greedy decoding is `top_k=1`.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        warm = 0 < self.temperature < math.inf
        check(
            [
                ("temperature", self.temperature, warm, "above 0; greedy decoding is top_k=1"),
                ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0, at most 1"),
                ("top_k", self.top_k, self.top_k >= 0, "1 or more; 0 keeps all"),
                ("min_p", self.min_p, 0 <= self.min_p < 1, "0 or more, below 1"),
            ]
        )

    def __call__(self, logits: Float[Tensor, "m V"], keep: Int[Tensor, "m"]) -> Tensor:
        """Logits of the distribution, -inf where cut; the tokens in `keep` are never cut.

        A token that was drawn stays in the support when the policy has since moved; on policy it is
        there anyway.
        """
        logits = logits.float() / self.temperature
        if not self.cuts:
            return logits
        cut = self.cut(logits.detach()).scatter(1, keep[:, None], False)
        return logits.masked_fill(cut, -torch.inf)

    def at(self, temperature: float = 1.0, top_k: int = 0) -> "Sampling":
        """The same, `temperature` times as hot, of the `top_k` likeliest only; 0: as many as here.

        >>> Sampling(temperature=0.5).at(2.0), Sampling().at(top_k=1).top_k
        (Sampling(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0), 1)
        """
        return replace(self, temperature=temperature * self.temperature, top_k=top_k or self.top_k)

    def draw(self, logits: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> tuple[Tensor, Tensor]:
        """One token for each row by inverse CDF at `u` in (0, 1), and its log-probability."""
        logits = logits.float() / self.temperature
        kept = logits.masked_fill(self.cut(logits), -torch.inf) if self.cuts else logits
        logp = kept.log_softmax(-1)
        # float64: the many unlikely tokens of a large vocabulary would be rounded away
        cdf = logp.exp().cumsum(-1, dtype=torch.float64)
        token = torch.searchsorted(cdf, u[:, None].double() * cdf[:, -1:], right=True)
        token = token.clamp(max=cdf.shape[1] - 1)  # u may round to 1
        # a sum made in parallel may step up by a rounding where nothing was added: never there
        cut = logp.gather(1, token).isneginf()
        token = torch.where(cut, logp.argmax(-1, keepdim=True), token)
        return token[:, 0], logp.gather(1, token)[:, 0]

    @property
    def cuts(self) -> bool:
        """Is any token ever cut?"""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def cut(self, logits: Float[Tensor, "m V"]) -> Bool[Tensor, "m V"]:
        """Where the distribution is cut to 0; `logits` are divided by the temperature already."""
        rules = {
            self._beyond_top_k: 0 < self.top_k < logits.shape[-1],
            self._beyond_top_p: self.top_p < 1,
            self._below_min_p: self.min_p > 0,
        }
        cut = torch.zeros_like(logits, dtype=torch.bool)
        for rule in (rule for rule, wanted in rules.items() if wanted):
            cut = cut | rule(logits.masked_fill(cut, -torch.inf))
        return cut

    def _beyond_top_k(self, logits: Tensor) -> Tensor:
        last = logits.topk(self.top_k).values[:, -1:]
        above, equal = logits > last, logits == last
        return ~above & (~equal | (equal.cumsum(-1) > self.top_k - above.sum(-1, keepdim=True)))

    def _beyond_top_p(self, logits: Tensor) -> Tensor:
        p, order = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
        beyond = pad(p.cumsum(-1)[:, :-1], (1, 0)) >= self.top_p  # reached before it; not the first
        return beyond.scatter(1, order, beyond)

    def _below_min_p(self, logits: Tensor) -> Tensor:
        return logits < logits.amax(-1, keepdim=True) + math.log(self.min_p)
