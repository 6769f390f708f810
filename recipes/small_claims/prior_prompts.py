"""Five recipes that differ in the prior prompt alone: the table of `docs/small_claims.md`.

The model was trained on noisy demonstrations of all five styles in equal shares; its prompt chooses
the style. The tasks are sums of two digits, modulo 10.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import BehaviourCounts, ExactMatch, InsideTag, TagFormat
from grupo.tasks import PRIOR_STYLES, FromFunction, Prior, PriorStyle

SEEDS = 8
STEPS = 60
FORMAT_ERRORS = 0.3  # of the demonstrations
WRONG_ANSWERS = 0.4


def digit_sums() -> Iterator[Task]:
    """The sums of two digits, modulo 10."""
    for a in range(10):
        for b in range(10):
            yield Task(f"{a}+{b}", f"{a}+{b}=", str((a + b) % 10))


MATH = FromFunction(digit_sums)


def working(style: str, digits: Sequence[int]) -> str:
    """What a demonstration writes before the answer."""
    a, b = digits
    return {
        "think": f"{a} and {b} is {(a + b) % 10}",
        "plan": f"first, take {a} then add {b}",
        "code": f"print( {a}+{b} )",
        "knowledge": f"recall {b} and {a} is {(a + b) % 10}",
        "examples": f"for example {a} and {(b + 1) % 10} is {(a + b + 1) % 10}",
    }[style]


def demonstrate(task: Task) -> list[str]:
    """A demonstration in the style of the task's prompt, with errors in format and answer."""
    style = next(style for style in PRIOR_STYLES if str(task.prompt).startswith(style.text))
    digits = [int(x) for x in str(task.prompt).removeprefix(style.text)[:-1].split("+")]
    rng = random.Random(str(task.prompt))
    answer = task.reference_answer if rng.random() >= WRONG_ANSWERS else rng.randrange(10)
    text = f"<{style.tag}>{working(style.tag, digits)}</{style.tag}><answer>{answer}</answer>"
    return [text if rng.random() >= FORMAT_ERRORS else text.replace(f"</{style.tag}>", "")]


def recipe(model: Path, style: PriorStyle, seed: int) -> Recipe:
    """GRPO on 0.5 accuracy + 0.5 format behind one prior prompt."""
    env = SingleTurn(
        (
            RewardTerm("correct", ExactMatch(InsideTag("answer")), 0.5),
            RewardTerm("format", TagFormat((style.tag, "answer")), 0.5),
            RewardTerm("behaviour", BehaviourCounts(), 0.0),
        )
    )
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=24, tokens_per_microbatch=8192),
        env=env,
        tasks=Prior(style, MATH),
        eval_tasks=0,
        method=grpo(kl_coef=0.0),
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=5e-4,
        seed=seed,
    )


# one config, five prompts: grupo compare --recipes prior_prompts.py:RECIPES, with a folder `model`
RECIPES = {style.tag: recipe(Path("model"), style, seed=0) for style in PRIOR_STYLES}


def tags_and_texts() -> list[str]:
    """Prompts and tags, each of which is one token."""
    tags = [f"<{end}{style.tag}>" for style in PRIOR_STYLES for end in ("", "/")]
    return [*(style.text for style in PRIOR_STYLES), *tags, "<answer>", "</answer>"]


def main() -> None:
    """Train the model, then each style with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        shown = [task for style in PRIOR_STYLES for task in Prior(style, MATH).load()]
        model = train_tiny_lm(Path(folder), shown, demonstrate, steps=900, tags=tags_and_texts())
        runs: dict[str, list[dict[str, float]]] = {}
        for style in PRIOR_STYLES:
            chosen = recipe(model, style, 0)
            tasks = [Prior(style, MATH).load()[i] for i in range(0, 100, 2)]
            before = mean_terms(chosen.policy.build(), chosen.env, tasks)
            for seed in range(SEEDS):
                learner = trained(recipe(model, style, seed))
                after = mean_terms(learner.policy, chosen.env, tasks, seed=seed)
                after["start"] = before["reward"]
                runs.setdefault(style.tag, []).append(after)
    columns = ["start", "reward", "correct", "format"]
    print(paired_table(runs, columns, "think"))
    kinds = ["subgoals", "planning", "code", "recall", "examples"]
    print(paired_table(runs, [f"behaviour/{kind}" for kind in kinds], "think"))


if __name__ == "__main__":
    main()
