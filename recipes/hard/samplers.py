"""Samplers and curricula where most answers are wrong: longer sums than the quickstart's model was
grown on.

grupo train recipes/hard/samplers.py:GRPO

`RECIPES` has one for each method, of as many rollouts a step as GRPO's, to be compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from re import findall

from grupo.core.component import piece
from grupo.core.schedules import Linear, Switch, Warmup, varying
from grupo.core.types import Observation, Rollout, Task
from grupo.envs import Part, SingleTurn
from grupo.method import Method
from grupo.methods.arrol import arrol
from grupo.methods.brpo import brpo
from grupo.methods.critique_grpo import critique_grpo
from grupo.methods.dapo import dapo
from grupo.methods.delethink import delethink
from grupo.methods.elastic_reasoning import elastic_reasoning
from grupo.methods.grpo import grpo
from grupo.methods.guide_grpo import guide_grpo
from grupo.methods.hill import hill
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.methods.r3 import r3
from grupo.methods.s_grpo import s_grpo
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.methods.spo import spo
from grupo.methods.tempo import tempo
from grupo.methods.treepo import treepo
from grupo.methods.vade import vade
from grupo.models.aux_models import Other
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import Role, Several
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import After, Exact
from grupo.rollouts.evaluate import Solved
from grupo.rollouts.samplers import (
    Anytime,
    Coached,
    EarlyExits,
    Guided,
    Independent,
    Refined,
    Scaffolded,
)
from grupo.rollouts.samplers.self_hint import unhinted
from grupo.tasks import ReasoningGym
from grupo.tasks.base import Indexed
from grupo.toy import quickstart, worked_solutions

PROMPTS, GROUP, LIMIT = 32, 8, 64
CLOSE = worked_solutions.MARK.strip()  # ends the working; the answer follows


@piece
class Hinted:
    """Sums with hints: `hint` and the last of `hints` say all of the working but its last step.

    Hints are begun answers: they stand where the answer would begin.
    """

    sums: ReasoningGym

    def load(self) -> Sequence[Task]:
        tasks = self.sums.load()
        return Indexed(len(tasks), lambda i: with_hints(tasks[i]))


def with_hints(task: Task) -> Task:
    """The task with the working up to its middle, and up to its last step, as hints."""
    steps = worked(task).splitlines()[0].split(" ")
    half, most = (" ".join(steps[:n]) for n in (len(steps) // 2, len(steps) - 1))
    return replace(task, columns={**task.columns, "hint": most, "hints": (half, most)})


def worked(task: Task) -> str:
    """The task worked out, as the model was taught to."""
    return worked_solutions.worked_sum(
        "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    )


def as_worked(task: Task, rollout: Rollout) -> str:
    """A critique: how it is done."""
    return worked(task)


def itself(task: Task, attempt: Rollout) -> Observation:
    """What who hints is shown: the task, for the model reads nothing else."""
    return task.prompt


def all_but_last(text: str) -> str:
    """The working that was said, without its last step."""
    return text.partition("\n")[0].rpartition(" ")[0]


GRPO = Recipe(
    policy=CausalLM(str(quickstart.SEEDLING.home), limit=LIMIT, budget=2048),
    env=SingleTurn((Part("correct", Exact(After(CLOSE))),)),
    tasks=Hinted(quickstart.sums(6, 10, size=400, seed=500_000_000)),
    held_out=quickstart.sums(6, 10, size=100, seed=900_000_000),
    method=grpo(GROUP, kl=0.0),
    steps=45,
    prompts=PROMPTS,
    lr=Warmup(0.1, Linear(2e-4, 2e-5)),
    evaluation=Evaluation(attempts=8, solved=Solved("correct")),
)

METHODS: dict[str, Method] = {
    "treepo": treepo(GROUP, segment=16, depth=4, rounds=2),
    "tempo": tempo(GROUP),
    "delethink": delethink(GROUP, chunk=32, head=1, tail=15, chunks=3),
    "s_grpo": s_grpo().but(sample=EarlyExits(GROUP - 1, "\n", CLOSE)),
    "elastic_reasoning": elastic_reasoning(GROUP, think=32, solve=8, close=CLOSE, kl=0.0),
    "brpo": brpo(4, (16, 32, 48), 2, 8, (1.0, 2.0, 3.0)).but(
        sample=Anytime(4, (16, 32, 48), 2, 8, hurry="\n", close=CLOSE, header="")
    ),
    "guide_grpo": guide_grpo().but(sample=Guided(Independent(GROUP), lead="")),
    "scaf_grpo": scaf_grpo().but(
        sample=Scaffolded(Independent(GROUP), varying(Switch(0.15, 0.0, 2.0)), lead="")
    ),
    "critique_grpo": critique_grpo(LIMIT).but(sample=Refined(Independent(GROUP), as_worked)),
    "dapo": dapo(LIMIT, 16, GROUP, rounds=3),
    "r3": r3(LIMIT, GROUP),
    "arrol": arrol(2 * GROUP, at=8, rest=LIMIT - 8),
    "knapsack_rl": knapsack_rl(GROUP, high=64),
    "vade": vade(GROUP),
}

RECIPES: dict[str, Recipe] = {
    "grpo": GRPO,
    **{name: GRPO.but(method=method) for name, method in METHODS.items()},
    "spo": GRPO.but(method=spo(), prompts=PROMPTS * GROUP),
    "hill": GRPO.but(
        policy=Several(GRPO.policy, (Role("hinter", GRPO.policy),)),
        method=hill(GROUP).but(
            sample=Coached(Independent(GROUP), 4, ask=itself, read=all_but_last, lead="")
        ),
        others=(Other("unhinted", "policy", unhinted),),
    ),
}
TWO_POLICIES = {name: RECIPES[name] for name in ("grpo", "hill")}
