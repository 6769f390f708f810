"""Recipes of small healthy runs, and the same recipes with one planted defect each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo.algo.advantages import Center, chain
from grupo.algo.losses import Clip, Entropy
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import FromFunction
from tests.helpers.planted_defects import (
    LETTERS,
    AscentAdam,
    SharperSampler,
    StaleSampler,
    TwoTurns,
    ZeroAdapters,
    constant_reward,
    length_reward,
    nan_reward,
    nan_term,
    negate,
)
from tests.helpers.small_model import make_small_model

STOPS = (".", " ", "=", "+", "?", ":")


def model(folder: Path) -> str:
    """A character-level model with 25 characters and peaked distributions."""
    return make_small_model(folder, [*LETTERS, *"0123456789", *STOPS], peaked=0.4)


def sums() -> Iterator[Task]:
    for i in range(1, 10):
        yield from (Task(f"{i}+{j}", f"{i}+{j}=", str(i + j)) for j in range(1, 10))


def leaking_sums() -> Iterator[Task]:
    for task in sums():
        yield replace(task, prompt=f"{task.reference_answer}: {task.prompt}")


METHOD = Method(sampler=GroupSampler(6))


def healthy(model: str) -> Recipe:
    """GRPO with two turns."""
    return Recipe(
        policy=CausalLM(model, max_new_tokens=16, stop_strings=STOPS, device="cpu"),
        env=TwoTurns(),
        tasks=FromFunction(sums),
        eval_tasks=0,
        method=METHOD,
        max_steps=8,
        prompts_per_step=6,
        learning_rate=5e-3,
    )


def adapted(model: str) -> Recipe:
    """The healthy recipe with LoRA adapters."""
    recipe = healthy(model)
    return recipe.replace(policy=replace(recipe.policy, lora=Lora(4)))


def longer(model: str) -> Recipe:
    """The healthy recipe with more steps and a higher learning rate."""
    return healthy(model).replace(max_steps=14, learning_rate=2e-2)


def with_policy(recipe: Recipe, kind: Any = CausalLM, **changes: Any) -> Recipe:
    """The recipe with another policy class or other fields of the policy."""
    spec: Any = recipe.policy
    names = ("model", "lora", "max_new_tokens", "stop_strings", "device")
    fields = {name: getattr(spec, name) for name in names}
    return recipe.replace(policy=kind(**{**fields, **changes}))


PlantDefect = Callable[[Recipe], Recipe]
# the finding's name, the healthy recipe, and a function that plants the defect
BROKEN: Mapping[str, tuple[str, Callable[[str], Recipe], PlantDefect]] = {
    "sign of the loss flipped": (
        "loss has the wrong sign",
        healthy,
        lambda r: r.replace(method=METHOD.replace(loss=-1.0 * Clip())),
    ),
    "sign of the advantages flipped": (
        "advantages oppose rewards",
        healthy,
        lambda r: r.replace(method=METHOD.replace(advantage=chain(Center(), negate))),
    ),
    "sign of the optimizer flipped": (
        "gradient ascent",
        healthy,
        lambda r: r.replace(optimizer=AscentAdam()),
    ),
    "constant reward": (
        "constant reward",
        healthy,
        lambda r: r.replace(env=TwoTurns(constant_reward)),
    ),
    "learning rate too high": (
        "learning rate too high",
        healthy,
        lambda r: r.replace(learning_rate=0.5),
    ),
    "truncated answers": ("truncated answers", healthy, lambda r: with_policy(r, max_new_tokens=2)),
    "leaking answer": (
        "answer in the prompt",
        healthy,
        lambda r: r.replace(tasks=FromFunction(leaking_sums)),
    ),
    "engine mismatch": (
        "sampler mismatch",
        healthy,
        lambda r: with_policy(r, SharperSampler),
    ),
    "stale weights": ("stale weights", healthy, lambda r: with_policy(r, StaleSampler)),
    "dead LoRA": ("dead adapters", adapted, lambda r: with_policy(r, ZeroAdapters)),
    "entropy collapse": (
        "entropy collapse",
        longer,
        lambda r: r.replace(method=METHOD.replace(loss=Clip() + 4.0 * Entropy())),
    ),
    "length hacking": (
        "reward follows length",
        healthy,
        lambda r: r.replace(env=TwoTurns(length_reward)),
    ),
    "NaN reward": (
        "failed rewards",
        healthy,
        lambda r: r.replace(env=SingleTurn((RewardTerm("term", nan_term),))),
    ),
    "NaN reward without an error": (
        "NaN rewards",
        healthy,
        lambda r: r.replace(env=TwoTurns(nan_reward)),
    ),
    "learning rate 0": ("weights unchanged", healthy, lambda r: r.replace(learning_rate=0.0)),
}
