"""Answers of masked diffusion models, drawn in every way that differs."""

import asyncio

import torch
from transformers import AutoModelForMaskedLM

from grupo.core.types import Action, Rollout
from grupo.models.masked.logp_estimators import Autoregressive, Coupled
from grupo.models.masked.unmask_order import Confident, LeftToRight
from grupo.models.masked_diffusion import MaskedPolicy
from tests.helpers.tiny_lm import PROMPTS, batch_of

ORDERS = {
    "left": (LeftToRight(), Autoregressive()),
    "coupled": (LeftToRight(), Coupled()),
    "confident": (Confident(4), Coupled()),
    "parallel": (Confident(5, at_once=2), Coupled(0.3, 0.6)),
}


def answers(policy: MaskedPolicy, attempts: int = 3, key: int = 7) -> list[Action]:
    """To every prompt so many."""

    async def everyone() -> list[Action]:
        act = policy.act(key)
        return await asyncio.gather(
            *(act.fork(p, i)(Rollout(), q) for p, q in enumerate(PROMPTS) for i in range(attempts))
        )

    return asyncio.run(everyone())


def batch(policy: MaskedPolicy, actions: list[Action]):
    """A row for each."""
    return batch_of(policy, [Rollout((("", action),)) for action in actions])


def hand(policy: MaskedPolicy, shown: list[int], width: int) -> torch.Tensor:
    """Log-probabilities at every place after `shown`, the rest masked; by transformers alone."""
    model = AutoModelForMaskedLM.from_pretrained(policy.spec.model).eval()
    mask = policy.denoiser.mask
    token = torch.tensor([shown + [mask] * (width - len(shown))])
    logits = model(token).logits[0].detach()
    logits[:, mask] = -torch.inf
    return logits.log_softmax(-1)
