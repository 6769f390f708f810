"""AdaptThink on two worlds: one where thinking adds nothing, one where it adds 60 points.

Named before the first run of all seeds: the share of answers without thinking, when the policy
chooses, ends above 0.9 in the first world and below 0.1 in the second one, in every seed.

python recipes/guidance/adaptthink.py FOLDER [FIRST_SEED END]
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from grupo.claims.paired_table import paired_table
from grupo.claims.stored_runs import stored_runs
from grupo.claims.tiny_lm import mean_terms, train_tiny_lm, trained
from grupo.core.component import component
from grupo.core.importing import load_module_file
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.methods.adaptthink import adaptthink
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.turns import ForcedStart
from grupo.tasks import InMemoryTasks
from grupo.training.learner import Learner

SEEDS = 8
STEPS = 60
COUNT = 12  # questions of a world
SKIP, THINK = "</think>", "Alright"
ANSWERS = ("red", "green", "blue", "white")
RIGHT = {"same": (0.9, 0.9), "hard": (0.3, 0.9)}  # share of right demonstrations: without, with


def world(name: str) -> list[Task]:
    """The questions of a world."""
    return [
        Task(
            f"{name} {i}",
            f"colour of {name} {i} ? ",
            ANSWERS[random.Random(f"{name} {i}").randrange(4)],
        )
        for i in range(COUNT)
    ]


def demonstrations(task: Task) -> list[str]:
    """Answers without and with thinking, right with the shares of the task's world."""
    rng = random.Random(task.key)
    texts = []
    for right, start in zip(
        RIGHT[task.key.split()[0]], (SKIP, f"{THINK} , let me see . "), strict=True
    ):
        for i in range(20):
            wrong = [answer for answer in ANSWERS if answer != task.reference_answer]
            colour = task.reference_answer if i < 20 * right else rng.choice(wrong)
            texts.append(f"{start}the colour that you ask for is {colour} , I say .")
    return texts


@component
class NamedColour:
    """1 if the answer names the right colour."""

    def __call__(self, task: Task, rollout: Rollout) -> float:
        return float(f" {task.reference_answer} ," in rollout.text)


@component
class SkipsThinking:
    """1 if the answer begins without thinking."""

    def __call__(self, task: Task, rollout: Rollout) -> float:
        return float(rollout.text.startswith(SKIP))


ENV = SingleTurn((RewardTerm("right", NamedColour()), RewardTerm("skips", SkipsThinking(), 0.0)))


def beginner(folder: Path) -> Path:
    """The folder of a model that knows both modes; trained once."""
    if not (folder / "model").exists():
        tasks = [*world("same"), *world("hard")]
        train_tiny_lm(folder, tasks, demonstrations, steps=700, tags=(SKIP, THINK))
    return folder / "model"


def with_pass_rates(model: Path, tasks: Sequence[Task]) -> list[Task]:
    """The tasks with the accuracy of 16 answers with thinking before training, as `pass_rate`."""
    policy = CausalLM(str(model), max_new_tokens=24).build()
    thinking = ForcedStart(THINK)
    return [
        replace(
            task,
            columns={
                "pass_rate": mean_terms(policy, ENV, [task], attempts=16, turn_strategy=thinking)[
                    "reward"
                ]
            },
        )
        for task in tasks
    ]


def recipe(model: Path, tasks: Sequence[Task], method: Method, seed: int) -> Recipe:
    """Training on one world."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=24, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=method,
        max_steps=STEPS,
        prompts_per_step=6,
        learning_rate=3e-4,
        seed=seed,
    )


def measured(learner: Learner, seed: int) -> dict[str, float]:
    """Means over answers whose mode the policy chooses."""
    tasks = [learner.tasks[i] for i in range(len(learner.tasks))]
    means = mean_terms(learner.policy, ENV, tasks, attempts=32, seed=seed)
    return {key: means[key] for key in ("skips", "right", "length")}


def main(folder: Path, seeds: Sequence[int]) -> None:
    """Train what is missing in the folder and print the tables."""
    model = beginner(folder)
    methods = {"GRPO": grpo(group_size=16, kl_coef=0.0), "AdaptThink": adaptthink()}
    for name in RIGHT:
        tasks = with_pass_rates(model, world(name))

        def run(method: Method, seed: int, tasks: Sequence[Task] = tasks) -> dict[str, float]:
            return measured(trained(recipe(model, tasks, method, seed)), seed)

        def untrained(seed: int, tasks: Sequence[Task] = tasks) -> dict[str, float]:
            return measured(Learner(recipe(model, tasks, methods["GRPO"], seed)), seed)

        arms = {key: partial(run, method) for key, method in methods.items()}
        runs = stored_runs(folder / name, {"beginner": untrained, **arms}, seeds)
        if len(seeds) > 1:
            print(paired_table(runs, ["skips", "right", "length"], "GRPO"), end="\n\n")
            shares = [run["skips"] for run in runs["AdaptThink"]]
            print(f"{name}: AdaptThink skips {min(shares):.3g} to {max(shares):.3g}\n")


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, SEEDS]
    load_module_file(Path(__file__)).main(Path(sys.argv[1]), range(*bounds))
