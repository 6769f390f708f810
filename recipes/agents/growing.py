"""Beginners of 0.1 million parameters, grown in a minute or two by being told what to say next."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grupo import (
    Adam,
    CausalLM,
    Cosine,
    Evaluation,
    Method,
    Part,
    Recipe,
    SingleTurn,
    Task,
    Warmup,
)
from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Likelihood
from grupo.recipe import Source
from grupo.rewards import Exact
from grupo.rollouts.samplers import Demonstrate
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import Llama
from grupo.training.trainer import begin


def lessons(
    policy: CausalLM, solve: Callable[[Task], Sequence[str]], tasks: Source, held_out: Source
) -> Recipe:
    """What `solve` says is recited; a share of it is said again of tasks that were held out."""
    return Recipe(
        policy=policy,
        env=SingleTurn((Part("same", Exact()),)),
        tasks=tasks,
        held_out=held_out,
        method=Method(
            sample=Demonstrate(solve), credit=identity, loss=Likelihood(), weigh=token_mean
        ),
        steps=80,
        prompts=32,
        lr=Warmup(0.05, Cosine(2e-3, 1e-4)),
        optimizer=Adam(decay=0.01),
        evaluation=Evaluation(attempts=1),
    )


def grow(recipe: Recipe, home: Path, texts: Iterable[str]) -> None:
    """Plant a model that knows the phrases of `texts`, and teach it."""
    Llama().plant(home / "start", phrase_tokenizer(texts))
    trainer = begin(recipe, home / "run")
    trainer()
    trainer.policy.export(home / "model")
