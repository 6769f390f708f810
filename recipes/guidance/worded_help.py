"""ExPO, SAGE, RGR-GRPO and ThinkTuning with requests in words, on rules that no rollout finds.

`hidden_rules.py` has the tasks, `taught_requests.py` the beginner, which takes each word for a
wrong rule, and the teacher. Each sampler asks in its default wording, and a model reads it: the
beginner explains the right answer (ExPO), writes hints of three levels from the solution (SAGE),
and revises its best answer towards the criteria that it fails (RGR-GRPO); the teacher reads an
answer, judges it and continues it (ThinkTuning).

Named before the first run of seeds 0 to 15: `correct`, the accuracy on held-out digits without any
help, after 8,000 generated tokens, those of explanations, hints, revisions and the teacher
counted. ExPO, SAGE and ThinkTuning minus GRPO, and RGR-GRPO minus GRPO on the same rubric, all
expected above 0, by the exact sequential sign-flip test with looks at 8, 12 and 16 pairs and an
error of 5 % for each of the four papers. Two arms beside them imitate a correct solution where ExPO
imitates an explanation: one in the beginner's own words, which is the upper bound and must win
first, and one in words that it never writes. Seed 100 chose the learning rate, the budget and the
number of words.

python recipes/guidance/worded_help.py FOLDER FILE [FIRST_SEED END [ARM …]]

FOLDER has the models, FILE a JSON line for each run; runs that it has are not repeated. Without
arms, all run; the tables are those of the arms that have all seeds.
"""

import asyncio
import random
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import torch

from grupo.compare.sequential_design import SequentialDesign
from grupo.compare.table_formats import markdown
from grupo.core.interfaces import Actor
from grupo.core.schedules import Linear, Warmup
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.methods.expo_self_explanation import expo_self_explanation
from grupo.methods.grpo import grpo
from grupo.methods.rgr_grpo import rgr_grpo
from grupo.methods.sage_self_hint import sage_self_hint
from grupo.methods.thinktuning import thinktuning
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import EarlyStopping, Recipe
from grupo.rewards import ExactMatch, FunctionReward
from grupo.rewards.checked_rubric import CheckedRubric
from grupo.rewards.judges.rubric_items import RubricColumn
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import (
    Explanations,
    GroupSampler,
    RecitedExplanation,
    Rescue,
    RescueAttempt,
    WithExpertSolution,
)
from grupo.rollouts.samplers.rescue import every_group
from grupo.rollouts.samplers.teacher_feedback import TEACHER_ROLE
from grupo.tasks import InMemoryTasks
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key

WORLD = load_module_file(Path(__file__).with_name("hidden_rules.py"))
REQUESTS = load_module_file(Path(__file__).with_name("taught_requests.py"))
GROUP_SIZE, MAX_TOKENS, MAX_NEW_TOKENS = 8, 8_000, 16
THINKTUNING, RGR, RUBRIC = "ThinkTuning", "RGR-GRPO", "GRPO on the rubric"
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def has_verdict(task: Task, rollout: Rollout) -> float:
    """1 if an answer has a verdict on itself, else 0."""
    return float(bool(WORLD.verdict(rollout)))


ENV = SingleTurn(
    (
        RewardTerm("correct", ExactMatch(WORLD.result)),
        RewardTerm("verdict", FunctionReward(has_verdict), 0.0),
    )
)
RUBRIC_ENV = SingleTurn(
    (RewardTerm("rubric", CheckedRubric(RubricColumn("rubric"), WORLD.is_met)),)
)
PLAIN = GroupSampler(GROUP_SIZE)
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
EXPO = expo_self_explanation(GROUP_SIZE)
EXPLAINED = RescueAttempt(
    Explanations(), training_prompt=RecitedExplanation(": {answer}"), source="explanation"
)
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "own words": EXPO.replace(sampler=WithExpertSolution(PLAIN)),
    "other words": EXPO.replace(sampler=WithExpertSolution(PLAIN, "lecture")),
    "ExPO": EXPO.replace(sampler=Rescue(PLAIN, (EXPLAINED,), every_group)),
    "SAGE": sage_self_hint(GROUP_SIZE),
    THINKTUNING: thinktuning(GROUP_SIZE),
    RUBRIC: GRPO,
    RGR: rgr_grpo(GROUP_SIZE),
}
BASELINES = {"ExPO": "GRPO", "SAGE": "GRPO", THINKTUNING: "GRPO", RGR: RUBRIC}


def policy_of(folder: Path, name: str) -> CausalLM:
    """The beginner or the teacher."""
    path = REQUESTS.model(folder, name)
    return CausalLM(path, max_new_tokens=MAX_NEW_TOKENS, tokens_per_microbatch=8192)


def help_recipe(folder: Path, arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Recipe:
    """The recipe of an arm; that of ThinkTuning has the teacher.

    Args:
        folder: Folder of the models.
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    policy: CausalLM | MultiPolicy = policy_of(folder, "beginner")
    if arm == THINKTUNING:
        policy = MultiPolicy(policy, (RolePolicy(TEACHER_ROLE, policy_of(folder, "teacher")),))
    return Recipe(
        policy=policy,
        env=RUBRIC_ENV if arm in (RUBRIC, RGR) else ENV,
        tasks=InMemoryTasks(WORLD.rule_tasks(held_out=False)),
        eval_tasks=0,
        method=METHODS[arm],
        max_steps=1000,
        prompts_per_step=16,
        learning_rate=Warmup(0.1, Linear(3e-3, 3e-4)),
        early_stopping=EarlyStopping(max_tokens=max_tokens),
        seed=seed,
    )


def run(folder: Path, arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Accuracy on held-out digits after `max_tokens`, and the share of answers with a verdict.

    Args:
        folder: Folder of the models.
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    learner = trained_for_tokens(help_recipe(folder, arm, seed, max_tokens))
    tasks = WORLD.rule_tasks(held_out=True)
    found = mean_terms(learner.policy, ENV, tasks, seed=seed)
    steps = float(learner.state.step)
    return {"correct": found["correct"], "verdict": found["verdict"], "steps": steps}


def beginners_requests() -> Mapping[str, Sequence[Task]]:
    """Requests for the rules of held-out tasks, with the texts that answer them."""
    tasks, rng = WORLD.rule_tasks(held_out=True), random.Random(0)
    pairs = [(task, WORLD.rule_of(task.columns["word"])) for task in tasks]
    drafts = (REQUESTS.beginners_rule(task, rng) for task in tasks)
    hints = {
        f"hints of level {level}": [REQUESTS.hint(*pair, level) for pair in pairs]
        for level in WORLD.LEVELS
    }
    return {
        "explanations": [REQUESTS.explanation(*pair) for pair in pairs],
        **hints,
        "revisions": [
            REQUESTS.revision(*pair, draft) for pair, draft in zip(pairs, drafts, strict=True)
        ],
    }


def teachers_requests() -> Mapping[str, Sequence[Task]]:
    """Requests for feedback on right and on wrong answers to held-out tasks, with the feedback."""
    tasks, rng = WORLD.rule_tasks(held_out=True), random.Random(0)
    right = [WORLD.rule_of(task.columns["word"]) for task in tasks]
    wrong = [REQUESTS.beginners_rule(task, rng) for task in tasks]
    return {
        f"feedback on {name} answers": [
            REQUESTS.feedback(*pair) for pair in zip(tasks, rules, strict=True)
        ]
        for name, rules in (("right", right), ("wrong", wrong))
    }


def abilities(policy: HasActor, requests: Mapping[str, Sequence[Task]]) -> str:
    """The share of requests that a model answers with the expected text, as a table."""
    same = SingleTurn((RewardTerm("same", ExactMatch()),))
    rows = [
        [name, f"{mean_terms(policy, same, tasks, attempts=4)['same']:.2f}"]
        for name, tasks in requests.items()
    ]
    return markdown([["request", "as asked"], *rows]).rstrip()


async def likelihoods(actor: Actor, task: Task, chain: str) -> tuple[float, float]:
    """Log-probabilities of a chain behind its task, and of the right answer behind both.

    Each is the mean over tokens, in nats.

    Args:
        actor: Computes the log-probabilities.
        task: The task.
        chain: A text up to the answer.
    """
    texts = (chain, f"{chain}: {task.reference_answer}")
    responses = [await actor.append_unsampled(Rollout(), task.prompt, text) for text in texts]
    length = len(responses[0].items) - 1  # without its end token
    logp = (await actor.logprobs(Rollout().append_turn(task.prompt, responses[1]))).logp
    return fmean(logp[:length]), fmean(logp[length:])


def properties(policy: HasActor) -> str:
    """The two properties that ExPO wants of a chain, of three kinds of chains, as a table."""
    actor = policy.actor(derive_key(0, "chains"))

    async def chain(prompt: str, label: str) -> str:
        return (await actor.fork(prompt, label)(Rollout(), prompt)).text.partition(":")[0]

    async def measured(task: Task) -> list[tuple[float, float]]:
        request = str(REQUESTS.explanation(task, WORLD.rule_of(task.columns["word"])).prompt)
        own = await chain(str(task.prompt), "own")
        chains = (await chain(request, "explained"), own, task.columns["lecture"].partition(":")[0])
        return [await likelihoods(actor, task, text) for text in chains]

    async def all_measured() -> list[list[tuple[float, float]]]:
        tasks = WORLD.rule_tasks(held_out=True)
        return [*await asyncio.gather(*map(measured, tasks))]

    kinds = zip(*run_coroutine(all_measured()), strict=True)
    names = ("explanation of the answer", "own chain", "solution in other words")
    rows = [
        [name, *(f"{fmean(values):.2f}" for values in zip(*kind, strict=True))]
        for name, kind in zip(names, kinds, strict=True)
    ]
    header = ["chain", "log-probability of the chain", "of the right answer behind it"]
    return markdown([header, *rows]).rstrip()


def main(folder: str, file: str, first_seed: str = "0", end: str = "8", *arms: str) -> None:
    """Run the arms and print the tables."""
    torch.set_num_threads(1)
    beginner = policy_of(Path(folder), "beginner").build()
    print(abilities(beginner, beginners_requests()), properties(beginner), sep="\n\n")
    if not arms or THINKTUNING in arms:
        print(abilities(policy_of(Path(folder), "teacher").build(), teachers_requests()))
    seeds = range(int(first_seed), int(end))
    chosen = {arm: partial(run, Path(folder), arm) for arm in arms or METHODS}
    runs = stored_runs(Path(file), chosen, seeds)
    print(paired_table(runs, ["correct", "verdict", "steps"], "GRPO"))
    for arm, baseline in BASELINES.items():
        if arm in runs and baseline in runs:
            pair = {baseline: runs[baseline], arm: runs[arm]}
            print(sequential_table(pair, "correct", baseline, DESIGN))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
