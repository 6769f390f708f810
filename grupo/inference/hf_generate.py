"""Sampling from models that do not take our attention: by transformers' own `generate`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from grupo.core.rng import uniform
from grupo.inference.base import Bounds, Reply, Request, alike
from grupo.inference.sampling_params import Sampling
from grupo.inference.stop_conditions import Ending

CELLS = 1 << 15  # tokens of context held at once


@dataclass(frozen=True)
class Generating:
    """Any causal language model of transformers, each row on its own."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    bounds: Bounds
    cells: int = CELLS

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, similar lengths together; where no room is left, with nothing."""
        self.model.eval()
        yield from ((i, Reply()) for i, r in enumerate(requests) if self.bounds.room(r) <= 0)
        for some in alike(requests):
            waiting = [i for i in some if self.bounds.room(requests[i]) > 0]
            waiting.sort(key=lambda i: (len(requests[i].tokens), requests[i].tokens))
            while waiting:
                longest = len(requests[waiting[-1]].tokens) + self.bounds.limit
                take = max(1, self.cells // longest)
                now, waiting = waiting[-take:], waiting[:-take]
                yield from zip(now, self._batch([requests[i] for i in now]), strict=True)

    def _batch(self, requests: Sequence[Request]) -> list[Reply]:
        ending = Ending(self.bounds.of(requests[0]), self.tokenizer)
        drawing = _Drawing(requests, self.model.device)
        token, mask = _left_padded([r.tokens for r in requests], self.model.device)
        # a config of our own: the model's would bend the distribution
        config = GenerationConfig(
            max_new_tokens=max(map(self.bounds.room, requests)), do_sample=False, pad_token_id=0
        )
        with _wishless(self.model):
            said: Any = self.model.generate(  # pyright: ignore[reportCallIssue]
                token,
                attention_mask=mask,
                generation_config=config,
                logits_processor=LogitsProcessorList([drawing]),
                stopping_criteria=StoppingCriteriaList([_Stopping(ending, token.shape[1])]),
            )
        tokens, logp = said[:, token.shape[1] :], torch.stack(drawing.logp, 1)
        return [
            ending.cut(request, t, p)
            for request, t, p in zip(requests, tokens.tolist(), logp.tolist(), strict=True)
        ]


@contextmanager
def _wishless(model: PreTrainedModel) -> Iterator[None]:
    """Without a generation config of the model: `generate` takes over what ours leaves open."""
    theirs, model.generation_config = model.generation_config, GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = theirs


class _Drawing(LogitsProcessor):
    """Draws by each rollout's own numbers, and leaves the greedy choice nothing else."""

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        self.sampling: Sampling = requests[0].sampling
        self.key = torch.tensor([r.key for r in requests], device=device)
        self.length = torch.tensor([len(r.tokens) for r in requests], device=device)
        self.logp: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # pyright: ignore
        u = uniform(self.key, self.length + len(self.logp))
        token, logp = self.sampling.draw(scores, u)
        self.logp.append(logp)
        return torch.full_like(scores, -torch.inf).scatter(1, token[:, None], 0.0)


class _Stopping(StoppingCriteria):
    """Which rows are over."""

    def __init__(self, ending: Ending, begins: int) -> None:
        self.ending, self.begins = ending, begins

    def __call__(self, input_ids: Tensor, scores: Any, **told: Any) -> Tensor:  # pyright: ignore
        said = input_ids[:, self.begins :]
        return self.ending.by_token(said[:, -1]) | self.ending.by_text(said.tolist(), said.device)


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask
