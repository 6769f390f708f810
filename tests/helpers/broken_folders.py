"""A small run that is healthy, and the same run broken on purpose, each time in one way."""

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
from grupo.models.loading import Lora
from grupo.recipe import Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import FromFunction
from tests.helpers.planted_defects import (
    LETTERS,
    Colder,
    Dead,
    Stale,
    TwoTurns,
    Uphill,
    always,
    by_length,
    no_number,
    raises,
    turned,
)
from tests.helpers.small_model import plant

STOPS = (".", " ", "=", "+", "?", ":")


def model(folder: Path) -> str:
    """A model of 25 characters, of peaked distributions."""
    return plant(folder, [*LETTERS, *"0123456789", *STOPS], peaked=0.4)


def sums() -> Iterator[Task]:
    for i in range(1, 10):
        yield from (Task(f"{i}+{j}", f"{i}+{j}=", str(i + j)) for j in range(1, 10))


def told_sums() -> Iterator[Task]:
    for task in sums():
        yield replace(task, prompt=f"{task.reference_answer}: {task.prompt}")


METHOD = Method(sampler=GroupSampler(6))


def healthy(model: str) -> Recipe:
    """Plain GRPO."""
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
    """The same with adapters."""
    recipe = healthy(model)
    return recipe.replace(policy=replace(recipe.policy, lora=Lora(4)))


def longer(model: str) -> Recipe:
    """The same, longer and faster."""
    return healthy(model).replace(max_steps=14, learning_rate=2e-2)


def with_policy(recipe: Recipe, kind: Any = CausalLM, **changes: Any) -> Recipe:
    """The recipe with another kind of policy, or the same otherwise."""
    spec: Any = recipe.policy
    own = {name: getattr(spec, name) for name in ("model", "lora", "limit", "stop", "device")}
    return recipe.replace(policy=kind(**{**own, **changes}))


Break = Callable[[Recipe], Recipe]
# the finding's name; the healthy run; how it is broken
BROKEN: Mapping[str, tuple[str, Callable[[str], Recipe], Break]] = {
    "sign of the loss flipped": (
        "pushed the wrong way",
        healthy,
        lambda r: r.replace(method=METHOD.replace(loss=-1.0 * Clip())),
    ),
    "sign of the credit flipped": (
        "advantages against the reward",
        healthy,
        lambda r: r.replace(method=METHOD.replace(advantage=chain(Center(), turned))),
    ),
    "sign of the optimizer flipped": (
        "weights go uphill",
        healthy,
        lambda r: r.replace(optimizer=Uphill()),
    ),
    "constant reward": (
        "reward never differs",
        healthy,
        lambda r: r.replace(env=TwoTurns(always)),
    ),
    "learning rate too high": (
        "learning rate too high",
        healthy,
        lambda r: r.replace(learning_rate=0.5),
    ),
    "truncated answers": ("answers cut off", healthy, lambda r: with_policy(r, limit=2)),
    "leaking answer": (
        "answer in the prompt",
        healthy,
        lambda r: r.replace(tasks=FromFunction(told_sums)),
    ),
    "engine mismatch": (
        "sampler and trainer disagree",
        healthy,
        lambda r: with_policy(r, Colder),
    ),
    "stale weights": ("stale weights", healthy, lambda r: with_policy(r, Stale)),
    "dead LoRA": ("dead adapters", adapted, lambda r: with_policy(r, Dead)),
    "entropy collapse": (
        "entropy collapse",
        longer,
        lambda r: r.replace(method=METHOD.replace(loss=Clip() + 4.0 * Entropy())),
    ),
    "length hacking": (
        "reward follows length",
        healthy,
        lambda r: r.replace(env=TwoTurns(by_length)),
    ),
    "NaN reward": (
        "failed rewards",
        healthy,
        lambda r: r.replace(env=SingleTurn((RewardTerm("part", raises),))),
    ),
    "NaN reward that nobody says has failed": (
        "NaN rewards",
        healthy,
        lambda r: r.replace(env=TwoTurns(no_number)),
    ),
    "learning rate 0": ("weights do not change", healthy, lambda r: r.replace(learning_rate=0.0)),
}
