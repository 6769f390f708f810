"""To backtrack or not: models trained on searches or on answers, before and after GRPO.

Writes a table of `docs/small_claims.md`. Named before the first run: the model trained on searches
gains most from GRPO; the model trained on direct answers gains pass@1 and loses pass@32; and with
as many tokens as one search has, several direct answers solve more before GRPO.

python recipes/small_claims/backtracking.py FOLDER [FIRST_SEED END]

Seeds in FOLDER are not repeated, so that two processes can share them; the tables are of all seeds
that have ended.
"""

import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import torch

from grupo.core.paper import Paper, Source
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.evidence.claims.tiny_lm import demonstration_recipe, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import AfterMarker, CountdownExpression
from grupo.rollouts.evaluate import HasActor, pass_at_k, run_rollouts
from grupo.tasks import CountdownTasks, InMemoryTasks
from grupo.tasks.countdown import ANSWER, BACK, depth_first_trace, solutions, terse_trace
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.rng import derive_key
from grupo.util.statistics import student_t_mean

PAPER = Paper(
    title="To Backtrack or Not to Backtrack: When Sequential Search Limits Model Reasoning",
    kind="environment",
    use="Which worked solutions to train on before RL: searches with their dead ends, or answers.",
    tags=("exploration", "sft"),
    catalogue=("backtrack-or-not",),
    source=Source(
        "abstract",
        "arXiv 2504.07052, abstract and public summaries; the form of the traces is our own",
    ),
    checked=("golden", "run"),
    missing=(
        "A table that concludes: two seeds ran, and the models that search are hardly trained.",
        "Sudoku, where the paper's searches win.",
        "Searches of several strategies, and budgets in FLOPs instead of tokens.",
    ),
    deviations=(
        "Three numbers of one digit instead of four, and no division.",
        "Searches are in one order and not pruned, so that each ends in a solution.",
    ),
    shown=(
        "docs/small_claims.md#to-backtrack-or-not",
        "tests/tasks/test_countdown.py::test_a_depth_first_search_by_hand",
    ),
)
SEEDS = 8
SFT_STEPS = 1000
STEPS = 60
ATTEMPTS = 32
HELD_OUT, TRAINING = 64, 2000
ARCHITECTURE = LlamaArchitecture(context_length=320)
MAX_TOKENS = 300
ENV = SingleTurn((RewardTerm("correct", CountdownExpression(AfterMarker(ANSWER.strip()))),))
Result = dict[str, float]


def all_tasks() -> list[Task]:
    """Tasks with different prompts, in an order that is always the same."""
    drawn = CountdownTasks(size=20_000, largest=6).load()
    distinct = {task.prompt: task for task in (drawn[i] for i in range(len(drawn)))}
    return list(distinct.values())[: HELD_OUT + TRAINING]


def search(task: Task) -> list[str]:
    """The depth-first search as a demonstration."""
    return [depth_first_trace(task.columns["numbers"], task.columns["target"])]


def terse_search(task: Task) -> list[str]:
    """The search whose last equations are results alone."""
    return [terse_trace(task.columns["numbers"], task.columns["target"])]


def direct(task: Task) -> list[str]:
    """One of the solutions at random, without a search."""
    found = solutions(task.columns["numbers"], task.columns["target"])
    return [ANSWER + random.Random(task.key).choice(found)]


STYLES: dict[str, Callable[[Task], list[str]]] = {
    "search": search,
    "terse search": terse_search,
    "direct": direct,
}


def supervised(folder: Path, style: str, tasks: Sequence[Task], seed: int) -> Path:
    """The folder of a model of 0.1 million parameters, trained from random weights."""
    solve = STYLES[style]
    texts = [f"{n} {n} to {n}\n{n}+{n}-{n}*{n}=({n})" for n in range(100)]
    tokenizer = word_tokenizer(texts, (ANSWER, f"{BACK} "))
    ARCHITECTURE.save_untrained(folder / "start", tokenizer, seed)
    recipe = demonstration_recipe(folder / "start", tasks, solve, steps=SFT_STEPS, seed=seed)
    trained(recipe).policy.export(folder / "model")
    return folder / "model"


def rl_recipe(model: Path, tasks: Sequence[Task], seed: int) -> Recipe:
    """GRPO with the binary reward."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=MAX_TOKENS, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=grpo(kl_coef=0.0),
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=5e-4,
        seed=seed,
    )


def measured(policy: HasActor, tasks: Sequence[Task], seed: int) -> Result:
    """Mean tokens of an answer, and pass@k for all k up to `ATTEMPTS`."""
    groups = run_rollouts(policy.actor(derive_key(seed, "claim")), ENV, tasks, ATTEMPTS)
    solved = [sum(r.reward > 0.5 for r in group.rollouts) for group in groups]
    passes = {
        f"pass@{k}": fmean(pass_at_k(k, ATTEMPTS, n) for n in solved)
        for k in range(1, ATTEMPTS + 1)
    }
    return {"tokens": fmean(r.length for g in groups for r in g.rollouts), **passes}


def at_tokens(result: Result, tokens: float) -> float:
    """pass@n for the n of which the answers have so many tokens, between integers linearly.

    >>> at_tokens({"tokens": 10.0, "pass@1": 0.2, "pass@2": 0.4}, 15.0)
    0.30000000000000004
    """
    n = min(max(tokens / result["tokens"], 1.0), float(ATTEMPTS))
    low, high = result[f"pass@{math.floor(n)}"], result[f"pass@{math.ceil(n)}"]
    return low + (n - math.floor(n)) * (high - low)


def run_seed(folder: Path, seed: int) -> None:
    """Train a model of each style, then with GRPO, and write the measures before and after it."""
    path = folder / f"seed{seed}.json"
    if path.exists():
        return
    tasks = all_tasks()
    held_out, training = tasks[:HELD_OUT], tasks[HELD_OUT:]
    found: dict[str, Result] = {}
    for style in STYLES:
        model = supervised(folder / f"seed{seed}" / style, style, training, seed)
        recipe = rl_recipe(model, training, seed)
        found[f"{style}, supervised"] = measured(recipe.policy.build(), held_out, seed)
        found[f"{style}, then GRPO"] = measured(trained(recipe).policy, held_out, seed)
    path.write_text(json.dumps(found))


def with_equal_tokens(found: dict[str, Result]) -> dict[str, Result]:
    """The results of a seed with pass@n at the tokens of one search at the same stage."""
    return {
        arm: {
            **result,
            "equal_tokens": at_tokens(result, found[f"search, {arm.split(', ')[1]}"]["tokens"]),
        }
        for arm, result in found.items()
    }


def print_tables(seeds: list[dict[str, Result]]) -> None:
    """Print a table of each style, and the differences between styles."""
    seeds = [with_equal_tokens(seed) for seed in seeds]
    metrics = ["pass@1", f"pass@{ATTEMPTS}", "equal_tokens", "tokens"]
    for style in STYLES:
        arms = [f"{style}, supervised", f"{style}, then GRPO"]
        print(paired_table({arm: [s[arm] for s in seeds] for arm in arms}, metrics, arms[0]))
    for other in ("terse search", "direct"):
        gains = [
            [
                s[f"{style}, then GRPO"]["pass@1"] - s[f"{style}, supervised"]["pass@1"]
                for s in seeds
            ]
            for style in ("search", other)
        ]
        more = [a - b for a, b in zip(*gains, strict=True)]
        print(f"gain of pass@1, search - {other}: {signed(student_t_mean(more))}")
        for stage in ("supervised", "then GRPO"):
            a, b = f"{other}, {stage}", f"search, {stage}"
            equal = [s[a]["equal_tokens"] - s[b]["equal_tokens"] for s in seeds]
            print(f"equal tokens, {stage}, {other} - search: {signed(student_t_mean(equal))}")


def main() -> None:
    """Run some seeds, all by default, and print the tables of all that have ended."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    first, end = map(int, sys.argv[2:]) if sys.argv[2:] else (0, SEEDS)
    for seed in range(first, end):
        run_seed(folder, seed)
    paths = sorted(folder.glob("seed*.json"))
    print(f"{len(paths)} seeds")
    if len(paths) > 1:
        print_tables([json.loads(path.read_text()) for path in paths])


if __name__ == "__main__":
    main()
