"""A beginner for the lake, grown in a minute: it knows the moves, and walks blindly.

python recipes/agents/beginner.py
"""

from pathlib import Path

from transformers import LlamaConfig, LlamaForCausalLM
from walks import Walks, next_move

from grupo import Adam, CausalLM, Cosine, Evaluation, Method, Part, Recipe, SingleTurn, Warmup
from grupo.credit import identity
from grupo.envs.worlds.frozen_lake import MOVES, Lakes
from grupo.grow.tokenizers import END, phrase_tokenizer
from grupo.losses import Likelihood
from grupo.randomness import seed_torch
from grupo.rewards import Exact
from grupo.sampling import Demonstrate
from grupo.trainer import begin
from grupo.weights import token_mean

HOME = Path(".grupo/models/lake-beginner")

RECIPE = Recipe(
    policy=CausalLM(str(HOME / "start"), limit=4, budget=8192),
    env=SingleTurn((Part("same", Exact()),)),
    tasks=Walks(Lakes(1000, seed=1)),
    held_out=Walks(Lakes(50, seed=2), each=1),
    method=Method(
        sample=Demonstrate(next_move), credit=identity, loss=Likelihood(), weigh=token_mean
    ),
    steps=80,
    prompts=32,
    lr=Warmup(0.05, Cosine(2e-3, 1e-4)),
    optimizer=Adam(decay=0.01),
    evaluation=Evaluation(attempts=1),
)


def plant(folder: Path) -> None:
    """An untrained model and its tokenizer."""
    tokenizer = phrase_tokenizer(MOVES)
    seed_torch(0, "plant")
    end = tokenizer.get_vocab()[END]
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=320,
        tie_word_embeddings=True,
        eos_token_id=end,
        bos_token_id=None,
        pad_token_id=end,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    plant(HOME / "start")
    trainer = begin(RECIPE, HOME / "run")
    trainer()
    trainer.policy.export(HOME / "model")
