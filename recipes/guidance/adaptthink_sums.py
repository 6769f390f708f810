"""AdaptThink on sums of digits: short ones that need no thought, and long ones that do.

Zhang et al., 2025, arXiv:2505.13417; `grupo/methods/adaptthink.py` has its record.

Half of the sums have two digits (`easy`), half have seven or eight (`hard`). The beginner writes
a thought, the running totals, before half of its answers. Answers restate the sum, so that hard
ones have more than twenty tokens without a thought: with a negative advantage the mean-token ratio
is clipped at 0.8, where no thinking has the probability 0.5 x 0.8^tokens. All arms generate the
same number of tokens. The upper bound, GRPO with a reward for the mode that the sum needs, must win
first.

Named before the first run of all seeds: on held-out sums the share of answers without thinking with
AdaptThink exceeds 0.9 in `easy` and is below 0.1 in `hard`: the 95 % intervals of the means over 8
seeds lie beyond these bounds. Its accuracy is not below GRPO's: the lower end of the interval of
the difference is above -0.05 (delta) for both.

python recipes/guidance/adaptthink_sums.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import (
    EVAL_SEED,
    TRAINING_SEED,
    hard_sums_recipe,
    trained_for_tokens,
)
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.evidence.survey import survey_tasks
from grupo.method import Method
from grupo.methods.adaptthink import adaptthink
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import TaskMixture
from grupo.tasks.digit_sums import DigitSums
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import LAST_DIGIT, SolutionsWithMistakes, ToyDigitSumsLM
from grupo.toy.thinking_sums import NO_THINKING, THINKING, WithAndWithoutThinking
from grupo.util.importing import load_module_file
from grupo.util.statistics import student_t_mean

SEEDS = 8
GROUP_SIZE, MAX_TOKENS, LEARNING_RATE = 8, 200_000, 3e-4
KINDS = {"easy": (2, 2), "hard": (7, 8)}  # fewest and most digits
STARTS = {"direct": NO_THINKING, "thinking": THINKING}


def sums(size: int, seed: int, easy_weight: float = 1.0) -> TaskMixture:
    """Sums of both kinds.

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
        easy_weight: Easy sums for each hard one.
    """
    weights = {"easy": easy_weight, "hard": 1.0}
    sources = (
        (DigitSums(*digits, size=size, seed=seed), weights[kind]) for kind, digits in KINDS.items()
    )
    return TaskMixture(tuple(sources), size, seed)


MODEL = ToyDigitSumsLM(
    tasks=sums(100_000, 600, easy_weight=3.0),
    eval_tasks=sums(200, 601),
    solve=WithAndWithoutThinking(SolutionsWithMistakes(mistake_probability=0.05)),
    max_new_tokens=96,
    prompts_per_step=32,
    max_steps=3000,
)


def is_direct(task: Task, rollout: Rollout) -> float:
    """1 for an answer without thinking."""
    return float(rollout.text.startswith(NO_THINKING))


def fits_kind(task: Task, rollout: Rollout) -> float:
    """1 for an answer without thinking to an easy sum, and for one with thinking to a hard sum."""
    is_easy = len(task.columns["terms"]) <= max(KINDS["easy"])
    return float(is_direct(task, rollout) == is_easy)


ENV = SingleTurn((*LAST_DIGIT.rewards, RewardTerm("direct", is_direct, weight=0.0)))
KNOWN_KIND = SingleTurn((*ENV.rewards, RewardTerm("fits", fits_kind)))
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
ADAPTTHINK = adaptthink(GROUP_SIZE, no_think_text=NO_THINKING, think_text=THINKING)
ARMS: Mapping[str, tuple[Method, SingleTurn]] = {
    "GRPO": (GRPO, ENV),
    "known kind": (GRPO, KNOWN_KIND),
    "AdaptThink": (ADAPTTHINK, ENV),
}


def beginner() -> HasActor:
    """The policy before training."""
    return CausalLM(str(ensure_trained(MODEL)), max_new_tokens=MODEL.max_new_tokens).build()


def started(tasks: Sequence[Task], start: str) -> Sequence[Task]:
    """The tasks with the first token of the answer in the prompt."""
    return [replace(task, prompt=f"{task.prompt}{start}") for task in tasks]


@cache
def surveyed_tasks() -> Sequence[Task]:
    """Training tasks with the accuracy of the beginner with thinking, in 8 attempts."""
    tasks = sums(400, TRAINING_SEED).load()
    parts = survey_tasks(beginner(), LAST_DIGIT, started(tasks, THINKING))
    rates = [survey.pass_rate for part in parts for survey in part]
    return [
        replace(task, columns={**task.columns, "pass_rate": rate})
        for task, rate in zip(tasks, rates, strict=True)
    ]


def recipe(method: Method, env: SingleTurn, seed: int, max_tokens: int = MAX_TOKENS) -> Recipe:
    """Train the toy model on sums of both kinds.

    Args:
        method: The method.
        env: Its rewards.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    base = hard_sums_recipe(
        method, seed=seed, max_tokens=max_tokens, model=MODEL, learning_rate=LEARNING_RATE
    )
    return base.replace(tasks=surveyed_tasks(), env=env)


def measured(policy: HasActor, seed: int, start: str = "") -> Metrics:
    """Accuracy, share of answers without thinking, and length, on held-out sums of each kind.

    Args:
        policy: Generates 4 attempts at each of 100 sums.
        seed: Seed of the attempts.
        start: First token of all answers; "" if the policy chooses.
    """
    metrics = {}
    for kind, digits in KINDS.items():
        tasks = started(DigitSums(*digits, size=100, seed=EVAL_SEED).load(), start)
        means = mean_terms(policy, ENV, tasks, attempts=4, seed=seed)
        metrics |= {f"{kind}/{name}": means[name] for name in ("correct", "direct", "length")}
    return metrics


def run(arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Metrics of the policy after `max_tokens`.

    Args:
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    ensure_trained(MODEL)
    learner = trained_for_tokens(recipe(*ARMS[arm], seed, max_tokens))
    return {**measured(learner.policy, seed), "steps": float(learner.state.step)}


def main(folder: str, first_seed: str = "0", end: str = str(SEEDS)) -> None:
    """Run all arms and print the tables."""
    for name, start in STARTS.items():
        print(name, measured(beginner(), 0, start), file=sys.stderr)
    arms = {
        "beginner": lambda seed: {**measured(beginner(), seed), "steps": 0.0},
        **{arm: partial(run, arm) for arm in ARMS},
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    if int(end) - int(first_seed) < 2:
        return
    for metric in ("direct", "correct", "length"):
        print(paired_table(runs, [f"{kind}/{metric}" for kind in KINDS], "GRPO"))
    print(paired_table(runs, ["steps"], "GRPO"))
    for kind, bound in {"easy": 0.9, "hard": 0.1}.items():
        shares = [x[f"{kind}/direct"] - bound for x in runs["AdaptThink"]]
        print(f"{kind}/direct - {bound}:", signed(student_t_mean(shares)))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
