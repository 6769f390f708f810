"""Beginners of 0.1 million parameters, grown in a minute or two by being told what to say next."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grupo import (
    Adam,
    CausalLM,
    Cosine,
    Evaluation,
    Method,
    Recipe,
    RewardTerm,
    SingleTurn,
    Task,
    Warmup,
)
from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.recipe import TaskSource
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.trainer import create_trainer


def sft_recipe(
    policy: CausalLM,
    solve: Callable[[Task], Sequence[str]],
    tasks: TaskSource,
    eval_tasks: TaskSource,
) -> Recipe:
    """What `solve` says is recited; a share of it is said again of tasks that were held out."""
    return Recipe(
        policy=policy,
        env=SingleTurn((RewardTerm("same", ExactMatch()),)),
        tasks=tasks,
        eval_tasks=eval_tasks,
        method=Method(
            sampler=DemonstrationSampler(solve),
            advantage=identity,
            loss=NLL(),
            aggregation=token_mean,
        ),
        max_steps=80,
        prompts_per_step=32,
        learning_rate=Warmup(0.05, Cosine(2e-3, 1e-4)),
        optimizer=Adam(weight_decay=0.01),
        evaluation=Evaluation(attempts=1),
    )


def train_toy_model(recipe: Recipe, model_dir: Path, texts: Iterable[str]) -> None:
    """Plant a model that knows the phrases of `texts`, and teach it."""
    LlamaArchitecture().save_untrained(model_dir / "start", phrase_tokenizer(texts))
    trainer = create_trainer(recipe, model_dir / "run")
    trainer()
    trainer.policy.export(model_dir / "model")
