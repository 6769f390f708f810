"""Rollouts of given text, and the tokens of their forward passes."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Response, Rollout
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.tiny_lm import ALPHABET, batch_of


def text_response(text: str) -> Response:
    """An answer with a token for each letter."""
    tokens = tuple(map(ALPHABET.index, text))
    return Response(tokens, (-1.0,) * len(tokens), ())


def conversation(policy: CausalPolicy, *turns: str) -> Rollout:
    """A rollout of alternating prompts and answers."""
    rollout = Rollout()
    for prompt, answer in zip(turns[::2], turns[1::2], strict=True):
        tokens = policy.encode_observation(rollout, prompt)
        rollout = rollout.append_turn(prompt, replace(text_response(answer), observation=tokens))
    return rollout


@contextmanager
def count_tokens(policy: CausalPolicy) -> Generator[list[int]]:
    """Number of tokens of each forward pass."""
    counts = list[int]()
    embedding = policy.hf_model.get_input_embeddings()
    handle = embedding.register_forward_pre_hook(lambda _, args: counts.append(args[0].numel()))
    yield counts
    handle.remove()


def shuffled_batch(
    policy: CausalPolicy, prompts: Sequence[str], attempts: int
) -> tuple[Batch, Tensor]:
    """Answers of 4 tokens in random order, and the index of each row's prompt."""
    order = torch.randperm(len(prompts) * attempts)
    rollouts = [
        conversation(policy, prompts[i // attempts], "abcdefgh"[i % attempts] * 4)
        for i in order.tolist()
    ]
    return batch_of(policy, rollouts), order // attempts
