"""Training of toy models of 0.1 million parameters from demonstrations, in a minute or two."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grupo import (
    Adam,
    CausalLM,
    Cosine,
    Evaluation,
    Recipe,
    RewardTerm,
    SingleTurn,
    Task,
    Warmup,
)
from grupo.algo.optimizers.decay import all_parameters
from grupo.methods.sft import sft
from grupo.recipe import TaskSource
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.start import create_trainer


def sft_recipe(
    policy: CausalLM,
    solve: Callable[[Task], Sequence[str]],
    tasks: TaskSource,
    eval_tasks: TaskSource,
) -> Recipe:
    """Supervised fine-tuning on the demonstrations that `solve` returns for a task."""
    return Recipe(
        policy=policy,
        env=SingleTurn((RewardTerm("same", ExactMatch()),)),
        tasks=tasks,
        eval_tasks=eval_tasks,
        method=sft().replace(sampler=DemonstrationSampler(solve)),
        max_steps=80,
        prompts_per_step=32,
        learning_rate=Warmup(0.05, Cosine(2e-3, 1e-4)),
        optimizer=Adam(weight_decay=0.01, decayed=all_parameters),
        evaluation=Evaluation(attempts=1),
    )


def train_toy_model(recipe: Recipe, model_dir: Path, texts: Iterable[str]) -> None:
    """Train a model whose tokens are the phrases of `texts`, and export it to `model_dir`/model."""
    LlamaArchitecture().save_untrained(model_dir / "start", phrase_tokenizer(texts))
    trainer = create_trainer(recipe, model_dir / "run")
    trainer()
    trainer.policy.export(model_dir / "model")
