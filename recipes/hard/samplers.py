"""Samplers and curricula on hard tasks: sums longer than those the quickstart's model knows.

grupo train recipes/hard/samplers.py:GRPO

`RECIPES` has a recipe for each method, with as many rollouts per step as GRPO's.
"""

from collections.abc import Sequence
from dataclasses import replace
from re import findall

from grupo.core.component import component
from grupo.core.schedules import Linear, Switch, Warmup
from grupo.core.types import Observation, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
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
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.methods.tempo import tempo
from grupo.methods.treepo import treepo
from grupo.methods.vade import vade
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import AfterMarker, ExactMatch
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import (
    AnytimeBudgets,
    EarlyExits,
    GroupSampler,
    with_critique,
    with_hint,
    with_scaffold,
    with_self_hints,
)
from grupo.rollouts.samplers.self_hint import prompt_without_hint
from grupo.tasks import ReasoningGym
from grupo.tasks.base import LazyTasks
from grupo.toy import quickstart, worked_solutions

PROMPTS_PER_STEP, GROUP_SIZE, MAX_NEW_TOKENS = 32, 8, 64
ANSWER_MARKER = worked_solutions.ANSWER_PREFIX.strip()  # between the working and the answer


@component
class HintedSums:
    """Sums with hints, which are prefixes of the worked solution.

    The column `hint`, and the last entry of `hints`, is the working without its last step.
    """

    sums: ReasoningGym

    def load(self) -> Sequence[Task]:
        tasks = self.sums.load()
        return LazyTasks(len(tasks), lambda i: with_hints(tasks[i]))


def with_hints(task: Task) -> Task:
    """The task with hints: half of the working, and the working without its last step."""
    steps = worked_solution(task).splitlines()[0].split(" ")
    half, all_but_last = (" ".join(steps[:n]) for n in (len(steps) // 2, len(steps) - 1))
    hints = {"hint": all_but_last, "hints": (half, all_but_last)}
    return replace(task, columns={**task.columns, **hints})


def worked_solution(task: Task) -> str:
    """The worked solution of a task."""
    return worked_solutions.running_total_solution(
        "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    )


def solution_critique(task: Task, rollout: Rollout) -> str:
    """A critique: the worked solution."""
    return worked_solution(task)


def task_prompt(task: Task, attempt: Rollout) -> Observation:
    """The prompt for a hint: the task itself, since the toy model knows no other prompts."""
    return task.prompt


def drop_last_step(text: str) -> str:
    """The working in a text, without its last step."""
    return text.partition("\n")[0].rpartition(" ")[0]


GRPO = Recipe(
    policy=CausalLM(
        str(quickstart.TOY_MODEL.model_dir),
        max_new_tokens=MAX_NEW_TOKENS,
        tokens_per_microbatch=2048,
    ),
    env=SingleTurn((RewardTerm("correct", ExactMatch(AfterMarker(ANSWER_MARKER))),)),
    tasks=HintedSums(quickstart.sum_tasks(6, 10, size=400, seed=500_000_000)),
    eval_tasks=quickstart.sum_tasks(6, 10, size=100, seed=900_000_000),
    method=grpo(GROUP_SIZE, kl_coef=0.0),
    max_steps=45,
    prompts_per_step=PROMPTS_PER_STEP,
    learning_rate=Warmup(0.1, Linear(2e-4, 2e-5)),
    evaluation=Evaluation(attempts=8, success=SuccessCriterion("correct")),
)

METHODS: dict[str, Method] = {
    "treepo": treepo(GROUP_SIZE, segment_tokens=16, max_depth=4, max_resample_rounds=2),
    "tempo": tempo(GROUP_SIZE),
    "delethink": delethink(
        GROUP_SIZE, chunk_size=32, prefix_tokens=1, suffix_tokens=15, max_chunks=3
    ),
    "s_grpo": s_grpo().replace(sampler=EarlyExits(GROUP_SIZE - 1, "\n", ANSWER_MARKER)),
    "elastic_reasoning": elastic_reasoning(
        GROUP_SIZE, thinking_tokens=32, answer_tokens=8, think_end=ANSWER_MARKER, kl_coef=0.0
    ),
    "brpo": brpo(4, (16, 32, 48), 2, 8, (1.0, 2.0, 3.0)).replace(
        sampler=AnytimeBudgets(
            4, (16, 32, 48), 2, 8, cutoff_text="\n", think_end=ANSWER_MARKER, answer_header=""
        )
    ),
    "guide_grpo": guide_grpo().replace(sampler=with_hint(GroupSampler(GROUP_SIZE), prefix_text="")),
    "scaf_grpo": scaf_grpo().replace(
        sampler=with_scaffold(GroupSampler(GROUP_SIZE), Switch(0.15, 0.0, 2.0), prefix_text="")
    ),
    "critique_grpo": critique_grpo(MAX_NEW_TOKENS).replace(
        sampler=with_critique(GroupSampler(GROUP_SIZE), solution_critique)
    ),
    "dapo": dapo(MAX_NEW_TOKENS, 16, GROUP_SIZE, max_resample_rounds=3),
    "r3": r3(MAX_NEW_TOKENS, GROUP_SIZE),
    "arrol": arrol(2 * GROUP_SIZE, prune_at=8, max_new_tokens_after=MAX_NEW_TOKENS - 8),
    "knapsack_rl": knapsack_rl(GROUP_SIZE, max_group_size=64),
    "vade": vade(GROUP_SIZE),
}

RECIPES: dict[str, Recipe] = {
    "grpo": GRPO,
    **{name: GRPO.replace(method=method) for name, method in METHODS.items()},
    "spo_single_stream": GRPO.replace(
        method=spo_single_stream(), prompts_per_step=PROMPTS_PER_STEP * GROUP_SIZE
    ),
    "hill": GRPO.replace(
        policy=MultiPolicy(GRPO.policy, (RolePolicy("hinter", GRPO.policy),)),
        method=hill(GROUP_SIZE).replace(
            sampler=with_self_hints(
                GroupSampler(GROUP_SIZE),
                4,
                hint_prompt=task_prompt,
                extract_hint=drop_last_step,
                prefix_text="",
            )
        ),
        aux_models=(AuxModel("unhinted", "policy", prompt_without_hint),),
    ),
}
TWO_POLICY_RECIPES = {name: RECIPES[name] for name in ("grpo", "hill")}
