"""Language models of two layers with random weights, and rollouts of theirs."""

import asyncio
from collections.abc import Iterator, Sequence
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
from grupo.core.types import Action, Group, Rollout, Task
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.training.collate import collate

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
GEMMA = {"sliding_window": 8, "tie_word_embeddings": False}  # tied, random ones repeat themselves
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


def tokenizer(**more: Any) -> PreTrainedTokenizerFast:
    """Every character is a token, every token a character but the end and two roles."""
    one = Tokenizer(models.WordLevel({c: i for i, c in enumerate(ALPHABET)}, unk_token=" "))
    one.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    one.decoder = decoders.Fuse()
    special = {"additional_special_tokens": ALPHABET[-2:]}
    return PreTrainedTokenizerFast(
        tokenizer_object=one, **{"eos_token": "<end>", **special, **more}
    )


def plant(folder: Path, family: str = "llama", *, says: dict[str, Any] | None = None, **more: Any):
    """A model with peaked distributions, as transformers saves it; `description` is of its tokenizer."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(FAMILIES[family](**more))
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    tokenizer(**(says or {})).save_pretrained(folder)
    return folder


@contextmanager
def dense(policy: CausalPolicy) -> Iterator[Any]:
    """The policy's model as transformers calls it, with its own attention."""
    ours = policy.hf_model.config._attn_implementation
    policy.hf_model.set_attn_implementation("eager")
    try:
        yield policy.hf_model
    finally:
        policy.hf_model.set_attn_implementation(ours)


@cache
def built(spec: CausalLM) -> CausalPolicy:
    """The policy, built once: for tests that leave it as it is."""
    return spec.build()


def spoken(
    policy: CausalPolicy,
    prompts: Sequence[str] = PROMPTS,
    attempts: int = 3,
    sampling: Sampling | None = None,
) -> list[list[Action]]:
    """So many answers to every prompt."""

    async def everyone() -> list[Action]:
        act = replace(policy.actor(7), sampling=sampling or policy.spec.sampling)
        return await asyncio.gather(
            *(act.fork(p, i)(Rollout(), q) for p, q in enumerate(prompts) for i in range(attempts))
        )

    said = asyncio.run(everyone())
    return [said[p * attempts :][:attempts] for p in range(len(prompts))]


def two_turns(policy: CausalPolicy, prompts: Sequence[str] = PROMPTS) -> list[Rollout]:
    """Rollouts in which the world speaks again after the first answer."""

    async def one(number: int, prompt: str) -> Rollout:
        act = policy.actor(7).fork(number)
        rollout = Rollout().append_turn(prompt, await act(Rollout(), prompt))
        return rollout.append_turn("And?", await act(rollout, "And?"))

    async def everyone() -> list[Rollout]:
        return await asyncio.gather(*(one(i, prompt) for i, prompt in enumerate(prompts)))

    return asyncio.run(everyone())


def batch_of(policy: CausalPolicy, rollouts: Sequence[Rollout]) -> Batch:
    """One group of these."""
    return collate([Group(Task("0", ""), tuple(rollouts))], policy.encode)


def answers(policy: CausalPolicy, attempts: int = 3) -> Batch:
    """A batch of answers to `PROMPTS_PER_STEP`."""
    said = [action for group in spoken(policy, attempts=attempts) for action in group]
    return batch_of(policy, [Rollout((("", action),)) for action in said])
