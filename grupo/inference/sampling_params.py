"""Sampling parameters: from logits to the distribution that is sampled from and trained."""

import math
from dataclasses import replace
from typing import Annotated

import torch
from annotated_types import Ge, Interval
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from grupo.core.component import check_field, component
from grupo.core.ranges import FractionBelowOne, PositiveProbability
from grupo.kernels.log_softmax import at_least_float32
from grupo.kernels.native import log_softmax

MIN_TEMPERATURE = 1e-30  # logits that are divided by less become infinite in float32


@component
class Sampling:
    """The distribution that is sampled from and trained: rescaled, truncated, renormalised.

    Temperature, `top_k`, `top_p` and `min_p` apply in this order. Among equally likely tokens the
    first ones count as likelier. `top_k=1` is greedy decoding.

    Args:
        temperature: divides the logits; 1e-30 or more.
        top_p: keeps the fewest tokens whose probabilities sum to top_p.
        top_k: keeps the k likeliest tokens; 0 keeps all.
        min_p: keeps tokens at least min_p times as likely as the likeliest.
    """

    temperature: Annotated[float, Interval(gt=0, lt=math.inf), "greedy decoding is top_k=1"] = 1.0
    top_p: PositiveProbability = 1.0
    top_k: Annotated[int, Ge(0), "0 keeps all"] = 0
    min_p: FractionBelowOne = 0.0

    def __post_init__(self) -> None:
        allowed = f"{MIN_TEMPERATURE:g} or more; greedy decoding is top_k=1"
        check_field(self, "temperature", self.temperature >= MIN_TEMPERATURE, allowed)

    def __call__(self, logits: Float[Tensor, "m V"], keep: Int[Tensor, "m"]) -> Tensor:
        """Logits of the distribution, -inf where truncated; tokens in `keep` are never truncated.

        A sampled token must stay in the support although the policy has changed since; on policy
        it always is.
        """
        logits = at_least_float32(logits) / self.temperature
        if not self.truncates:
            return logits
        mask = self.truncation_mask(logits.detach()).scatter(1, keep[:, None], False)
        return logits.masked_fill(mask, -torch.inf)

    def adjust(self, temperature_factor: float = 1.0, top_k: int = 0) -> "Sampling":
        """A copy with a multiplied temperature and another `top_k`; 0 leaves `top_k` unchanged.

        >>> Sampling(temperature=0.5).adjust(2.0), Sampling().adjust(top_k=1).top_k
        (Sampling(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0), 1)
        """
        return replace(
            self, temperature=temperature_factor * self.temperature, top_k=top_k or self.top_k
        )

    def sample(self, logits: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> tuple[Tensor, Tensor]:
        """Samples one token for each row by inverse CDF at `u` in (0, 1).

        Returns the tokens and their log-probabilities.
        """
        logits = at_least_float32(logits)
        if self.top_k == 1:
            max_logit, token = logits.max(-1)
            return token, max_logit - max_logit  # 0, or nan for nan
        if not self.truncates and log_softmax.is_supported(logits):
            return _sample_natively(logits.contiguous(), u, self.temperature)
        logits = logits if self.temperature == 1 else logits / self.temperature
        if self.truncates:
            logits = logits.masked_fill(self.truncation_mask(logits), -torch.inf)
        p = logits.softmax(-1)
        token = _inverse_cdf(p, u)
        token_p = p.gather(1, token[:, None])[:, 0]
        impossible = token_p == 0  # rounding may raise a cumulative sum at a truncated token
        if p.is_cuda or impossible.any():  # the program would wait for a GPU to read this
            token = torch.where(impossible, p.argmax(-1), token)
            token_p = p.gather(1, token[:, None])[:, 0]
        return token, token_p.log()

    @property
    def truncates(self) -> bool:
        """Whether any token can have probability 0."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def truncation_mask(self, logits: Float[Tensor, "m V"]) -> Bool[Tensor, "m V"]:
        """True for tokens of probability 0; `logits` are divided by the temperature already."""
        rules = {
            self._beyond_top_k: 0 < self.top_k < logits.shape[-1],
            self._beyond_top_p: self.top_p < 1,
            self._below_min_p: self.min_p > 0,
        }
        mask = torch.zeros_like(logits, dtype=torch.bool)
        for rule, applies in rules.items():
            if applies:
                mask = mask | rule(logits.masked_fill(mask, -torch.inf))
        return mask

    def _beyond_top_k(self, logits: Tensor) -> Tensor:
        threshold = logits.topk(self.top_k).values[:, -1:]
        above = logits > threshold
        equal = logits == threshold
        return ~above & (~equal | (equal.cumsum(-1) > self.top_k - above.sum(-1, keepdim=True)))

    def _beyond_top_p(self, logits: Tensor) -> Tensor:
        p, order = logits.softmax(-1).sort(dim=-1, descending=True, stable=True)
        # top_p was reached before the token; never for the first
        beyond = pad(p.cumsum(-1)[:, :-1], (1, 0)) >= self.top_p
        return beyond.scatter(1, order, beyond)

    def _below_min_p(self, logits: Tensor) -> Tensor:
        return logits < logits.amax(-1, keepdim=True) + math.log(self.min_p)


def _sample_natively(
    logits: Float[Tensor, "m V"], u: Float[Tensor, "m"], temperature: float
) -> tuple[Int[Tensor, "m"], Float[Tensor, "m"]]:
    logp = logits.new_empty(len(logits))
    token = torch.empty_like(logp, dtype=torch.long)
    log_softmax.call("sample", logits, temperature, u.double(), token, logp)
    return token, logp


def _inverse_cdf(p: Float[Tensor, "m V"], u: Float[Tensor, "m"]) -> Int[Tensor, "m"]:
    """The token at which the cumulative probability exceeds u: first its block, then the token.

    Blocks are summed in float64: float32 would round away the many unlikely tokens of a large
    vocabulary.
    """
    size = max(1, math.isqrt(p.shape[1]))
    blocks = pad(p, (0, -p.shape[1] % size)).unflatten(1, (-1, size))
    cumulative = blocks.sum(-1).double().cumsum(-1)
    goal = u[:, None].double() * cumulative[:, -1:]
    block = torch.searchsorted(cumulative, goal, right=True)
    block = block.clamp(max=cumulative.shape[1] - 1)
    before = pad(cumulative, (1, 0)).gather(1, block)
    within = blocks.gather(1, block[..., None].expand(-1, -1, size))[:, 0]
    offset = torch.searchsorted(within.double().cumsum(-1), goal - before, right=True)
    token = block * size + offset.clamp(max=size - 1)
    return token[:, 0].clamp(max=p.shape[1] - 1)  # u may round to 1
