"""Tiny language models with random weights, and their rollouts."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from grupo.core.batch import Batch
from grupo.core.types import Group, Response, Rollout, Task
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine

ALPHABET = ["<end>", *map(chr, range(32, 127)), "\n", "<|user|>", "<|model|>"]
CONTEXT = 64
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)
WIDE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
}
ENDS = {"vocab_size": len(ALPHABET), "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
# with tied random embeddings, a model repeats its input
GEMMA = {"sliding_window": 8, "tie_word_embeddings": False}
FAMILIES: dict[str, Any] = {
    "llama": lambda **more: LlamaConfig(**{**WIDE, **ENDS, **more}),
    "qwen3": lambda **more: Qwen3Config(**{**WIDE, **ENDS, "tie_word_embeddings": True, **more}),
    "gpt2": lambda **more: GPT2Config(
        **{"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT, **ENDS, **more}
    ),
    "gemma2": lambda **more: Gemma2Config(**{**WIDE, **ENDS, **GEMMA, **more}),
    "gemma3": lambda **more: Gemma3TextConfig(**{**WIDE, **ENDS, **GEMMA, **more}),
}
PROMPTS = ("Hi", "What is 2+2?", "A rather longer question, of many words:", "Hi")


def tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """A token for each character, and for the end and two roles."""
    backend = Tokenizer(models.WordLevel({c: i for i, c in enumerate(ALPHABET)}, unk_token=" "))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    defaults = {"eos_token": "<end>", "additional_special_tokens": ALPHABET[-2:]}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **{**defaults, **options})


def save_model(
    folder: Path,
    family: str = "llama",
    *,
    tokenizer_options: dict[str, Any] | None = None,
    **config: Any,
) -> Path:
    """Save a random model with peaked distributions, and its tokenizer."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(FAMILIES[family](**config))
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    tokenizer(**(tokenizer_options or {})).save_pretrained(folder)
    return folder


@contextmanager
def dense_attention(policy: CausalPolicy) -> Generator[Any]:
    """The policy's model with the attention of transformers."""
    packed = policy.hf_model.config._attn_implementation
    policy.hf_model.set_attn_implementation("eager")
    try:
        yield policy.hf_model
    finally:
        policy.hf_model.set_attn_implementation(packed)


@cache
def build_cached(spec: CausalLM) -> CausalPolicy:
    """The policy of a spec, built once: for tests that do not change it."""
    return spec.build()


def generate(
    policy: CausalPolicy,
    prompts: Sequence[str] = PROMPTS,
    attempts: int = 3,
    sampling: Sampling | None = None,
) -> list[list[Response]]:
    """Several answers to every prompt, generated in one batch."""

    async def generate_all() -> list[Response]:
        actor = replace(policy.actor(7), sampling=sampling or policy.spec.sampling)
        return await asyncio.gather(
            *(
                actor.fork(p, i)(Rollout(), prompt)
                for p, prompt in enumerate(prompts)
                for i in range(attempts)
            )
        )

    responses = run_coroutine(generate_all())
    return [responses[p * attempts :][:attempts] for p in range(len(prompts))]


def two_turn_rollouts(policy: CausalPolicy, prompts: Sequence[str] = PROMPTS) -> list[Rollout]:
    """Rollouts with a second observation and answer."""

    async def two_turns(number: int, prompt: str) -> Rollout:
        actor = policy.actor(7).fork(number)
        rollout = Rollout().append_turn(prompt, await actor(Rollout(), prompt))
        return rollout.append_turn("And?", await actor(rollout, "And?"))

    async def generate_all() -> list[Rollout]:
        return await asyncio.gather(*(two_turns(i, prompt) for i, prompt in enumerate(prompts)))

    return run_coroutine(generate_all())


def batch_of(policy: CausalPolicy, rollouts: Sequence[Rollout]) -> Batch:
    """A batch of one group."""
    return collate([Group(Task("0", ""), tuple(rollouts))], policy.encode)


def answer_batch(policy: CausalPolicy, attempts: int = 3) -> Batch:
    """A batch of answers to `PROMPTS`."""
    responses = [response for group in generate(policy, attempts=attempts) for response in group]
    return batch_of(policy, [Rollout((("", response),)) for response in responses])
