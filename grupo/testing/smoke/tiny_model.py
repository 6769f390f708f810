"""A beginner: a language model of one layer that has seen a few worked answers."""

import tempfile
from functools import cache
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from grupo.algo.advantages import identity
from grupo.algo.losses import Likelihood
from grupo.core.rng import seed_torch
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.samplers import Column, Demonstrate
from grupo.testing.smoke.echo_env import DIGITS, LETTERS, LIMIT, Digits, Echo
from grupo.training.learner import Learner

VOCABULARY = ["<end>", *DIGITS, *LETTERS, "="]
BEGINNER, TEACHER = 18, 60  # steps of being shown


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Where models lie while this process lives."""
    return tempfile.TemporaryDirectory(prefix="grupo-proving-")


@cache
def model(steps: int, shift: int = 0) -> str:
    """The folder of a model that was shown the right answers for so many steps."""
    seed, path = _seed(), Path(folder().name) / f"{steps}-{shift}"
    recipe = Recipe(
        policy=CausalLM(seed, limit=LIMIT),
        env=Echo(shift),
        tasks=Digits(shift),
        held_out=0,
        method=Method(sample=Demonstrate(Column()), credit=identity, loss=Likelihood()),
        steps=steps,
        prompts=16,
        lr=1e-2,
    )
    learner = Learner(recipe)
    for _ in range(steps):
        learner.step()
    learner.policy.export(path)
    return str(path)


@cache
def _seed() -> str:
    """A model with random weights, and its tokenizer: every character a token."""
    path = Path(folder().name) / "seed"
    logging.disable_progress_bar()
    seed_torch(0, "beginner")
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    words = {character: i for i, character in enumerate(VOCABULARY)}
    one = Tokenizer(models.WordLevel(words, unk_token="="))
    one.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    one.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=one, eos_token="<end>").save_pretrained(path)
    return str(path)
