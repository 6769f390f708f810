"""ARIES: GRPO of a policy that steers a graph of thoughts. Gimenes et al., arXiv:2502.21208.

The task, the solver and the schedules are those of `sorting_graphs.py`. A toy model clones a
schedule that refines at random, with other random operations among it, and is then trained by GRPO;
the solver stays as it is. The first runs cloned the fixed schedule, see docs/agents.md.

The table, named before it was made, for a task whose size trials had chosen: lists sorted, among
64 that no training has seen, with at most 6 calls of the solver in each session. Arms: the fixed
schedule; the schedule that refines where errors are; the clone; the clone after 60 steps of GRPO.
The claim is that the last one sorts more lists than the fixed schedule. Budget: 4 minutes of a core
for a seed.

A second table has both schedules with a pretrained solver, which sorts lists of eight numbers as it
is, greedily, with at most 8 calls: lists sorted, and thoughts of two numbers without errors. No
gain is expected of a model that hardly merges.

python recipes/agents/thought_graphs.py FOLDER [SEEDS]    # appends to FOLDER/results.jsonl
python recipes/agents/thought_graphs.py FOLDER --solver smollm2    # the second table
grupo train recipes/agents/thought_graphs.py:RECIPE       # after the first command
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from sorting_graphs import (
    GRAPH,
    AtRandom,
    SlippingSolver,
    by_errors,
    fixed_schedule,
    lists,
    nodes_in,
    play,
)

from grupo import CausalLM, Recipe, Task
from grupo.core.interfaces import Actor
from grupo.core.types import Observation, Rollout
from grupo.envs import MultiplayerEnv
from grupo.envs.game_session import Opponent
from grupo.envs.thoughts import ThoughtGraph
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.methods.grpo import grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import FreshContext
from grupo.tasks import FromFunction
from grupo.training.learner import Learner
from grupo.util.console import print_line
from grupo.util.event_loop import run_coroutine
from grupo.util.user_paths import models_dir

NOISE = 0.1  # share of random operations in the demonstrations
DEMONSTRATED = 400  # sessions that the toy model clones
MAX_TURNS = 14
STEPS = 60
SCHEDULES = {"fixed schedule": fixed_schedule, "by errors": by_errors}
TEST = tuple(lists(10_000, 64))
MODEL = models_dir() / "thought_graphs" / "model"
ENV = MultiplayerEnv(GRAPH, max_turns=MAX_TURNS, opponent=SlippingSolver())


def training_lists() -> Iterator[Task]:
    """The lists that GRPO trains on."""
    return lists(1000, 400)


def cloned_pages() -> list[Task]:
    """The demonstrations: an observation, and the operation that answers it."""
    tasks = lists(0, DEMONSTRATED)
    policy = AtRandom(random.Random("demonstrations"))
    sessions = [play(task, policy, noise=NOISE, max_turns=MAX_TURNS) for task in tasks]
    pages = [page for session in sessions for page in session.pages]
    return [Task(f"page {i}", page, operation) for i, (page, operation) in enumerate(pages)]


def operation_of(page: Task) -> Sequence[str]:
    """The demonstrated operation."""
    return [str(page.reference_answer)]


def pieces(pages: Sequence[Task]) -> Iterator[str]:
    """Texts that are one token of the toy model: operations, and what follows a colon."""
    for page in pages:
        yield str(page.reference_answer)
        for line in str(page.prompt).splitlines():
            node, colon, rest = line.partition(":")
            made_by = node.partition(" = ")[2]
            yield from filter(None, (made_by, colon + rest))


def save_model(folder: Path, steps: int = 200) -> Path:
    """Clone the demonstrations, and return the folder of the model."""
    pages = cloned_pages()
    return train_tiny_lm(
        folder, pages, operation_of, steps=steps, tasks_per_step=96, tags=pieces(pages)
    )


def recipe(model: Path, seed: int = 0) -> Recipe:
    """GRPO of the policy; the solver is the opponent, which is not trained."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=8, tokens_per_microbatch=16384),
        env=ENV,
        tasks=FromFunction(training_lists),
        eval_tasks=0,
        method=replace(grpo(kl_coef=0.0), sampler=GroupSampler(8, FreshContext())),
        max_steps=STEPS,
        prompts_per_step=12,
        learning_rate=1e-3,
        seed=seed,
    )


RECIPE = recipe(MODEL)


def scripted_rows() -> Iterator[dict[str, object]]:
    """The schedules on the test lists."""
    for name, schedule in SCHEDULES.items():
        sessions = [play(task, schedule) for task in TEST]
        calls = fmean(session.calls for session in sessions)
        yield {"arm": name, "sorted": fmean(x.reward for x in sessions), "calls": calls}


def learned_rows(model: Path, seed: int) -> Iterator[dict[str, object]]:
    """The clone, and the clone after GRPO, on the test lists."""
    learner = Learner(recipe(model, seed))
    for step in range(STEPS + 1):
        if step:
            learner.step()
        if step in (0, STEPS):
            terms = mean_terms(
                learner.policy, ENV, TEST, attempts=2, seed=seed, turn_strategy=FreshContext()
            )
            arm = "after GRPO" if step else "clone"
            row = {"arm": arm, "seed": seed, "sorted": terms["reward"]}
            yield {**row, "calls": terms["solver_calls"], "illegal": terms.get("illegal", 0.0)}


@dataclass(frozen=True)
class ModelSolver:
    """A model that replies to each prompt in a context of its own.

    Args:
        actor: Generates the replies.
    """

    actor: Actor

    def __call__(self, observation: Observation, rng: random.Random) -> str:
        return run_coroutine(self.actor(Rollout(), observation)).text


def solver_rows(solver: Opponent, count: int = 4) -> Iterator[dict[str, object]]:
    """The schedules with another solver, on lists of eight numbers that are split into pairs."""
    graph = ThoughtGraph(parts=4, max_calls=8)
    for name, schedule in SCHEDULES.items():
        tasks = lists(20_000, count, 8)
        sessions = [play(task, schedule, graph=graph, solver=solver) for task in tasks]
        nodes = [node for session in sessions for node in nodes_in(session.end)]
        pairs = [node.errors == 0 for node in nodes if node.made_by == "solve"]
        row = {"arm": name, "sorted": fmean(session.reward for session in sessions)}
        yield {**row, "right_pairs": fmean(pairs), "calls": fmean(x.calls for x in sessions)}


def main(
    folder: Annotated[Path, typer.Argument(help="Receives results.jsonl.")],
    seeds: Annotated[int, typer.Argument(help="Number of seeds.")] = 1,
    solver: Annotated[str, typer.Option(help="A chat model as the solver of the schedules.")] = "",
) -> None:
    """Print and append a line for each arm."""
    if solver:
        policy = CausalLM(solver, max_new_tokens=48, apply_chat_template=True).build()
        rows = solver_rows(ModelSolver(policy.actor(0).with_sampling(top_k=1)))
    else:
        if not MODEL.is_dir():
            save_model(MODEL.parent)
        learned = (learned_rows(MODEL, seed) for seed in range(seeds))
        rows = chain(scripted_rows(), *learned)
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        print_line(json.dumps(row))
        with (folder / "results.jsonl").open("a") as file:
            file.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    typer.run(main)
