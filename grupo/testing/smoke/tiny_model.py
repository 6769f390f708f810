"""The model of the smoke runs: a one-layer language model, fine-tuned on a few correct answers."""

import tempfile
from functools import cache
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from grupo.algo.aggregation import sequence_mean
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.testing.smoke.echo_env import DIGITS, LETTERS, MAX_NEW_TOKENS, EchoEnv, EchoTasks
from grupo.training.learner import Learner
from grupo.util.rng import seed_torch

VOCABULARY = ["<end>", *DIGITS, *LETTERS, "="]
# steps of supervised fine-tuning
STUDENT_STEPS = 18
TEACHER_STEPS = 60


@cache
def models_dir() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for models; it is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="grupo-smoke-")


@cache
def trained_model(steps: int, shift: int = 0) -> str:
    """The folder of a model that was fine-tuned on correct answers.

    Args:
        steps: Number of training steps.
        shift: The shift of the environment, which decides the correct answers.
    """
    path = Path(models_dir().name) / f"{steps}-{shift}"
    method = sft("solution").replace(aggregation=sequence_mean)
    recipe = Recipe(
        policy=CausalLM(_untrained_model(), max_new_tokens=MAX_NEW_TOKENS),
        env=EchoEnv(shift),
        tasks=EchoTasks(shift),
        eval_tasks=0,
        method=method,
        max_steps=steps,
        prompts_per_step=16,
        learning_rate=1e-2,
    )
    learner = Learner(recipe)
    for _ in range(steps):
        learner.step()
    learner.policy.export(path)
    return str(path)


@cache
def _untrained_model() -> str:
    """The folder of a model with random weights and its tokenizer: one token per character."""
    path = Path(models_dir().name) / "untrained"
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
    token_ids = {character: i for i, character in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(token_ids, unk_token="="))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(path)
    return str(path)
