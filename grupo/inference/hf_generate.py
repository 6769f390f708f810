"""Generation by transformers' own `generate`, for models without packed attention."""

from collections.abc import Generator, Iterator, Sequence
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

from grupo.inference.base import (
    Reply,
    Request,
    StopConditions,
    batchable_groups,
    check_ordinary_decoding,
)
from grupo.inference.sampling_params import Sampling
from grupo.inference.stop_conditions import StopChecker
from grupo.util.rng import uniform

MAX_CONTEXT_TOKENS = 1 << 15  # tokens of prompts and answers in one batch


@dataclass(frozen=True)
class HFGenerateEngine:
    """Engine for any causal language model of transformers; prompts are left-padded.

    Args:
        model: the model.
        tokenizer: decodes answers in the search for stop strings.
        stop_conditions: of all answers.
        max_context_tokens: tokens of prompts and answers in one batch.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    max_context_tokens: int = MAX_CONTEXT_TOKENS

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers every request; an empty reply if the context is full.

        Prompts of similar length share a batch.
        """
        check_ordinary_decoding(requests, f"the own attention of {type(self.model).__name__}")
        self.model.eval()
        remaining = [self.stop_conditions.remaining_tokens(request) for request in requests]
        yield from ((i, Reply()) for i, tokens in enumerate(remaining) if tokens <= 0)
        for group in batchable_groups(requests):
            waiting = [i for i in group if remaining[i] > 0]
            waiting.sort(key=lambda i: (len(requests[i].tokens), requests[i].tokens))
            while waiting:
                longest = len(requests[waiting[-1]].tokens) + self.stop_conditions.max_new_tokens
                count = max(1, self.max_context_tokens // longest)
                batch = waiting[-count:]
                waiting = waiting[:-count]
                replies = self._generate_batch([requests[i] for i in batch])
                yield from zip(batch, replies, strict=True)

    def _generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        checker = StopChecker(self.stop_conditions.for_request(requests[0]), self.tokenizer)
        sampler = _SampleByKey(requests, self.model.device)
        token, mask = _left_padded([r.tokens for r in requests], self.model.device)
        config = GenerationConfig(
            max_new_tokens=max(map(self.stop_conditions.remaining_tokens, requests)),
            do_sample=False,
            pad_token_id=0,
        )
        with _default_generation_config(self.model):
            output: Any = self.model.generate(  # pyrefly: ignore[not-callable]
                **self.model_arguments(token),
                attention_mask=mask,
                generation_config=config,
                logits_processor=LogitsProcessorList([sampler]),
                stopping_criteria=StoppingCriteriaList([_StopCriteria(checker, token.shape[1])]),
            )
        tokens = output[:, token.shape[1] :]
        logp = torch.stack(sampler.logp, 1)
        rows = zip(requests, tokens.tolist(), logp.tolist(), strict=True)
        return [checker.truncate(request, *row) for request, *row in rows]

    def model_arguments(self, token: Tensor) -> dict[str, Any]:
        """Arguments of the model for left-padded prompts (N, L)."""
        return {"input_ids": token}


@contextmanager
def _default_generation_config(model: PreTrainedModel) -> Generator[None]:
    """Replaces the model's generation config by the default one.

    `generate` takes values that the given config leaves open, such as penalties, from the model's,
    and these would change the distribution.
    """
    original = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = original


class _SampleByKey(LogitsProcessor):
    """Samples with each request's random stream and masks all other tokens."""

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        self.sampling: Sampling = requests[0].sampling
        self.rng_key = torch.tensor([r.rng_key for r in requests], device=device)
        self.prompt_length = torch.tensor([len(r.tokens) for r in requests], device=device)
        self.logp: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        u = uniform(self.rng_key, self.prompt_length + len(self.logp))
        token, logp = self.sampling.sample(scores, u)
        self.logp.append(logp)
        return torch.full_like(scores, -torch.inf).scatter(1, token[:, None], 0.0)


class _StopCriteria(StoppingCriteria):
    """Ends rows by the engine's stop conditions."""

    def __init__(self, stop_checker: StopChecker, prompt_width: int) -> None:
        self.stop_checker = stop_checker
        self.prompt_width = prompt_width

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        tokens = input_ids[:, self.prompt_width :]
        by_text = self.stop_checker.by_text(tokens.tolist(), tokens.device)
        return self.stop_checker.by_token(tokens[:, -1]) | by_text


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens and attention mask, both (N, L)."""
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask
