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
from grupo.inference.base import Reply, Request, StopConditions, batchable_groups
from grupo.inference.sampling_params import Sampling
from grupo.inference.stop_conditions import StopChecker

MAX_CONTEXT_TOKENS = 1 << 15  # tokens of context held at once


@dataclass(frozen=True)
class HFGenerateEngine:
    """Any causal language model of transformers, each row on its own."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    max_context_tokens: int = MAX_CONTEXT_TOKENS

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, similar lengths together; where no room is left, with nothing."""
        self.model.eval()
        yield from (
            (i, Reply())
            for i, r in enumerate(requests)
            if self.stop_conditions.remaining_tokens(r) <= 0
        )
        for some in batchable_groups(requests):
            waiting = [i for i in some if self.stop_conditions.remaining_tokens(requests[i]) > 0]
            waiting.sort(key=lambda i: (len(requests[i].tokens), requests[i].tokens))
            while waiting:
                longest = len(requests[waiting[-1]].tokens) + self.stop_conditions.max_new_tokens
                take = max(1, self.max_context_tokens // longest)
                now, waiting = waiting[-take:], waiting[:-take]
                yield from zip(now, self._generate_batch([requests[i] for i in now]), strict=True)

    def _generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        ending = StopChecker(self.stop_conditions.for_request(requests[0]), self.tokenizer)
        drawing = _SampleByKey(requests, self.model.device)
        token, mask = _left_padded([r.tokens for r in requests], self.model.device)
        # a config of our own: the model's would bend the distribution
        config = GenerationConfig(
            max_new_tokens=max(map(self.stop_conditions.remaining_tokens, requests)),
            do_sample=False,
            pad_token_id=0,
        )
        with _default_generation_config(self.model):
            said: Any = self.model.generate(  # pyright: ignore[reportCallIssue]
                token,
                attention_mask=mask,
                generation_config=config,
                logits_processor=LogitsProcessorList([drawing]),
                stopping_criteria=StoppingCriteriaList([_StopCriteria(ending, token.shape[1])]),
            )
        tokens, logp = said[:, token.shape[1] :], torch.stack(drawing.logp, 1)
        return [
            ending.truncate(request, t, p)
            for request, t, p in zip(requests, tokens.tolist(), logp.tolist(), strict=True)
        ]


@contextmanager
def _default_generation_config(model: PreTrainedModel) -> Iterator[None]:
    """Without a generation config of the model: `generate` takes over what ours leaves open."""
    theirs, model.generation_config = model.generation_config, GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = theirs


class _SampleByKey(LogitsProcessor):
    """Draws by each rollout's own numbers, and leaves the greedy choice nothing else."""

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        self.sampling: Sampling = requests[0].sampling
        self.rng_key = torch.tensor([r.rng_key for r in requests], device=device)
        self.prompt_length = torch.tensor([len(r.tokens) for r in requests], device=device)
        self.logp: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # pyright: ignore
        u = uniform(self.rng_key, self.prompt_length + len(self.logp))
        token, logp = self.sampling.sample(scores, u)
        self.logp.append(logp)
        return torch.full_like(scores, -torch.inf).scatter(1, token[:, None], 0.0)


class _StopCriteria(StoppingCriteria):
    """Which rows are over."""

    def __init__(self, stop_checker: StopChecker, prompt_width: int) -> None:
        self.stop_checker, self.prompt_width = stop_checker, prompt_width

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:  # pyright: ignore
        said = input_ids[:, self.prompt_width :]
        return self.stop_checker.by_token(said[:, -1]) | self.stop_checker.by_text(
            said.tolist(), said.device
        )


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask
