"""ReAd: a critic sends a planner's actions back before they are executed. Zhang et al., 2024.

Two robots pass each other in the corridor of `corridor.py`; one planner names the actions of both.
A toy model clones a planner that names a best action with probability 1/2, else any, that replies
to its own proposal with "yes" or "no", right with probability 0.65, and that proposes another
action when asked again. The planner is frozen; a value head with a model of its own is regressed on
the returns of its sessions.

The table, named before the first run: rounds to the goal (15 where it is not reached) and tokens of
the planner for each action that is executed, over all starts. Arms: the planner alone; its
self-reflection, with at most 3 revisions; the critic, with at most 3 revisions and the threshold 0.
The claim is that the critic needs fewer rounds than self-reflection, and fewer tokens. Budget: 4
minutes of a core for a seed.

python recipes/agents/read_embodied.py FOLDER [SEEDS]    # appends to FOLDER/results.jsonl
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from corridor import ACTIONS, Corridor, best_actions, distances, page, planned, starts

from grupo import CausalLM, Recipe, Task
from grupo.algo.advantages.gae import GAE
from grupo.algo.losses import OutcomeValueLoss
from grupo.core.aux_heads import FeatureHead, OwnModelHead
from grupo.core.interfaces import TurnStrategy
from grupo.core.usage import count_external_usage
from grupo.envs import MultiTurn
from grupo.evidence.claims.tiny_lm import train_tiny_lm
from grupo.method import Method
from grupo.rollouts.evaluate import run_rollouts
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import AdvantageRevision, FreshContext, Revised
from grupo.tasks import FromFunction
from grupo.training.learner import Learner
from grupo.util.console import print_line
from grupo.util.rng import derive_key

RIGHT = 0.5  # share of best actions among those of the planner that are not random
VERDICT = 0.65  # probability that the planner's judgement of its own action is right
MOST = 3  # revisions of an action
STEPS = 50  # updates of the critic
ATTEMPTS = 4  # sessions from each start
HEAD = OwnModelHead("value", initial_value=-0.5)
ENV = MultiTurn(Corridor, max_turns=64)
FRESH = FreshContext()
AGAIN = "{task}{answer} is not good. Another action:\n"
ADVISED = "{task}{answer} has the advantage {advantage}. Another action:\n"
GOOD = "{task}Is {answer} good?\n"
STRATEGIES: dict[str, TurnStrategy] = {
    "planner": FRESH,
    "self-reflection": FreshContext(Revised(MOST, AGAIN, stop_prompt=GOOD)),
    "critic": FreshContext(AdvantageRevision(HEAD.name, 0.0, MOST, ADVISED)),
}


def critic(head: FeatureHead = HEAD) -> Method:
    """The squared error of a head with the return of the whole session, behind each action.

    A page does not show how many rounds were played, so that the head predicts a mean over
    sessions; the advantage of an action is not biased by this.

    Args:
        head: Predicts the return from the page and the actions of earlier robots.
    """
    return Method(
        sampler=GroupSampler(4, FRESH), advantage=GAE(1.0, 1.0, head), loss=OutcomeValueLoss()
    )


def demonstrations(count: int = 60) -> list[Task]:
    """Pages with the planner's reply: an action, another action, or a judgement.

    Args:
        count: Replies to each page.
    """
    rng = random.Random("planner")
    tasks = []
    for cells in distances():
        for earlier in ((), *((action,) for action in ACTIONS)):
            for _ in range(count // (1 if not earlier else 4)):
                text, answer = page(cells, earlier), planned(cells, earlier, rng, RIGHT)
                tasks += [(text, answer), *_second_replies(cells, earlier, text, answer, rng)]
    return [Task(f"{number}", *pair) for number, pair in enumerate(tasks)]


def _second_replies(
    cells: tuple[int, int],
    earlier: Sequence[str],
    text: str,
    answer: str,
    rng: random.Random,
) -> Iterator[tuple[str, str]]:
    """Prompts about the planner's own action, each with its reply."""
    others = [action for action in ACTIONS if action != answer]
    best = [action for action in best_actions(cells, earlier) if action != answer] or others
    other = rng.choice(best if rng.random() < RIGHT else others)
    advantage = f"{-rng.random() * 0.3:.2f}"
    for form in (AGAIN, ADVISED):
        values = {"task": text, "answer": answer, "advantage": advantage}
        yield form.format(**values), other
    is_right = (answer in best_actions(cells, earlier)) == (rng.random() < VERDICT)
    yield GOOD.format(task=text, answer=answer), "yes" if is_right else "no"


def replies(task: Task) -> Sequence[str]:
    """The demonstrated reply."""
    return [str(task.reference_answer)]


def save_model(folder: Path, steps: int = 300) -> Path:
    """Clone the planner, and return the folder of the model."""
    tasks = demonstrations()
    lines = {f"{line}\n" for task in tasks for line in page_lines(task)}
    return train_tiny_lm(folder, tasks, replies, steps=steps, tasks_per_step=256, tags=lines)


def page_lines(task: Task) -> Sequence[str]:
    """The first two lines of a prompt, each of which is one token of the toy model."""
    return str(task.prompt).splitlines()[:2]


def recipe(model: Path, seed: int = 0) -> Recipe:
    """Regression of the critic on sessions of the planner, which stays as it is."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=4, tokens_per_microbatch=16384),
        env=ENV,
        tasks=FromFunction(starts),
        eval_tasks=0,
        method=critic(),
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=0.0,
        aux_head_learning_rate=3e-3,
        seed=seed,
    )


def rows(model: Path, seed: int, steps: int = STEPS) -> Iterator[dict[str, object]]:
    """The arms of a seed: rounds, arrivals, tokens for an action, and counts of strategies."""
    learner = Learner(recipe(model, seed))
    for _ in range(steps):
        learner.step()
    tasks = list(starts())
    for arm, strategy in STRATEGIES.items():
        actor = learner.policy.actor(derive_key(seed, "arms"))
        with count_external_usage() as usage:
            groups = run_rollouts(actor, ENV, tasks, ATTEMPTS, strategy)
        terms = [rollout.reward_terms for group in groups for rollout in group.rollouts]
        row = {name: fmean(of[name] for of in terms) for name in ("rounds", "arrived")}
        generated = sum(actor.generated_tokens.values())
        per_action = generated / sum(of["turns"] for of in terms)
        yield {"arm": arm, "seed": seed, **row, "tokens_per_action": per_action, **usage}


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the toy model and results.jsonl.")],
    seeds: Annotated[int, typer.Argument(help="Number of seeds.")] = 1,
) -> None:
    """Print and append a line for each arm and seed."""
    if not (folder / "model").is_dir():
        save_model(folder)
    for seed in range(seeds):
        for row in rows(folder / "model", seed):
            print_line(json.dumps(row))
            with (folder / "results.jsonl").open("a") as file:
                file.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    typer.run(main)
