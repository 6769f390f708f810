"""From logits to the distribution that is sampled from, and trained."""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.core.component import component
from grupo.core.validation import check_constraints
from grupo.kernels.log_softmax import at_least_float32
from grupo.kernels.native import log_softmax


@component
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
        check_constraints(
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
        logits = at_least_float32(logits) / self.temperature
        if not self.truncates:
            return logits
        cut = self.truncation_mask(logits.detach()).scatter(1, keep[:, None], False)
        return logits.masked_fill(cut, -torch.inf)

    def adjust(self, temperature_factor: float = 1.0, top_k: int = 0) -> "Sampling":
        """The same, `temperature` times as hot, of the `top_k` likeliest only; 0: as many as here.

        >>> Sampling(temperature=0.5).at(2.0), Sampling().at(top_k=1).top_k
        (Sampling(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0), 1)
        """
        return replace(
            self, temperature=temperature_factor * self.temperature, top_k=top_k or self.top_k
        )

    def sample(self, logits: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> tuple[Tensor, Tensor]:
        """One token for each row by inverse CDF at `u` in (0, 1), and its log-probability."""
        logits = at_least_float32(logits)
        if self.top_k == 1:
            most, token = logits.max(-1)
            return token, most - most  # 0, but of what is no number
        if not self.truncates and log_softmax.is_supported(logits):
            return _sample_natively(logits.contiguous(), u, self.temperature)
        logits = logits if self.temperature == 1 else logits / self.temperature
        kept = (
            logits.masked_fill(self.truncation_mask(logits), -torch.inf)
            if self.truncates
            else logits
        )
        p = kept.softmax(-1)
        token = _inverse_cdf(p, u)
        drawn = p.gather(1, token[:, None])[:, 0]
        if (drawn == 0).any():  # a sum may step up by a rounding where nothing was added
            token = torch.where(drawn == 0, p.argmax(-1), token)
            drawn = p.gather(1, token[:, None])[:, 0]
        return token, drawn.log()

    @property
    def truncates(self) -> bool:
        """Is any token ever cut?"""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def truncation_mask(self, logits: Float[Tensor, "m V"]) -> Bool[Tensor, "m V"]:
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


def _sample_natively(
    logits: Float[Tensor, "m V"], u: Float[Tensor, "m"], temperature: float
) -> tuple[Int[Tensor, "m"], Float[Tensor, "m"]]:
    logp = logits.new_empty(len(logits))
    token = torch.empty_like(logp, dtype=torch.long)
    log_softmax.call("draw", logits, temperature, u.double(), token, logp)
    return token, logp


def _inverse_cdf(p: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> Int[Tensor, "m"]:
    """Where the cumulated probabilities pass u: first which block, then where within it.

    Blocks add up in float64: the many unlikely tokens of a large vocabulary would be rounded away.
    """
    size = max(1, math.isqrt(p.shape[1]))
    blocks = pad(p, (0, -p.shape[1] % size)).unflatten(1, (-1, size))
    upto = blocks.sum(-1).double().cumsum(-1)
    goal = u[:, None].double() * upto[:, -1:]
    block = torch.searchsorted(upto, goal, right=True).clamp(max=upto.shape[1] - 1)
    before = pad(upto, (1, 0)).gather(1, block)
    within = blocks.gather(1, block[..., None].expand(-1, -1, size))[:, 0]
    place = torch.searchsorted(within.double().cumsum(-1), goal - before, right=True)
    token = block * size + place.clamp(max=size - 1)
    return token[:, 0].clamp(max=p.shape[1] - 1)  # u may round to 1
