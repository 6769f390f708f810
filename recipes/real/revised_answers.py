"""Five revisions of an answer by a small real model, before and after self-improving SRPO.

Choi et al., 2024, arXiv:2406.01660: a policy that was trained on pairs, each answer also as a
revision of both, improves its answers by revising them again. `PIPELINE` collects pairs of right
and wrong answers to sums of one digit and trains adapters on them. The third arm is the loop of
reflections of PRefLexOR (Buehler, 2024, arXiv:2410.12375) without training: before each revision,
the policy writes what is to be improved, and reads it.

Fixed before the first run: the share of TASKS held-out sums that the fifth revision solves, less
that of the first answer, of each arm, with a bootstrap interval over tasks. Claim: above 0 after
self-improving SRPO. One training run and 12 tasks are no conclusion. Tokens are those of all
answers and reflections.

grupo train recipes/real/revised_answers.py:PIPELINE --run runs/srpo
python recipes/real/revised_answers.py FILE --trained runs/srpo    # appends a line of each task
python recipes/real/revised_answers.py FILE --table                # the table of the lines in FILE
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from grupo.core.forms import fill
from grupo.core.interfaces import TurnStrategy, open_env, run_rollout, score_group
from grupo.core.private_turns import record_private_turns
from grupo.core.response_use import generation_only
from grupo.core.types import Observation, Response, Rollout, Task
from grupo.evidence.survey import TaskFamily
from grupo.methods.srpo_self_improving import srpo_self_improving
from grupo.models.lora import Lora
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers.self_improving_pairs import SelfImprovingPairs
from grupo.rollouts.turns import Revised
from grupo.rollouts.turns.private_context import task_text, with_task_text
from grupo.rollouts.turns.revised import ASK, GUIDE, GUIDED
from grupo.training.resume.load_run import load_policy
from grupo.util.console import print_line
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key
from grupo.util.statistics import bootstrap_interval

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
FAMILY, TASKS, REVISIONS, PAIRS = "sums_1_digit", 12, 5, 24
REVISED = Revised(most=REVISIONS)
REFLECTED = Revised(most=REVISIONS, ask=GUIDED, guide=GUIDE)
ARMS: Mapping[str, TurnStrategy] = {
    "start": REVISED,
    "start, with reflections": REFLECTED,
    "after SRPO": REVISED,
}


def revision_prompt(prompt: Observation, answer: str) -> Observation:
    """The prompt of a revision, as `Revised` asks for it."""
    return with_task_text(prompt, fill(ASK, {"task": task_text(prompt), "answer": answer}))


RECIPE = TRAINING.family_recipe(FAMILY)
BASE = RECIPE.replace(
    policy=replace(RECIPE.policy, lora=Lora(rank=8, alpha=16.0), tokens_per_microbatch=1024),
    eval_tasks=0,  # `main` measures the answers
    max_steps=6,
    prompts_per_step=4,
    learning_rate=3e-4,
    save_every=6,
)
SRPO = srpo_self_improving().replace(sampler=SelfImprovingPairs(revision_prompt=revision_prompt))
PIPELINE = Pipeline(
    (
        CollectStage("pairs", BASE, attempts=4, count=2 * PAIRS),
        Stage("srpo", BASE.replace(method=SRPO, tasks=CollectedTasks("pairs"))),
    )
)


def answers(policy: HasActor, family: TaskFamily, task: Task, strategy: TurnStrategy) -> Any:
    """All answers to a task, which of them solve it, and the tokens that all cost."""
    with generation_only():
        actor = policy.actor(derive_key(0, "revised", task.key))
    env = open_env(family.env)
    with record_private_turns() as turns:
        last = run_coroutine(run_rollout(task, env, actor, turn_strategy=strategy))
    texts = [turn.text for turn in turns if turn.label.startswith("answer ")]
    rollouts = [
        Rollout().append_turn(task.prompt, Response((0,), (0.0,), text=text))
        for text in (*texts, last.text)
    ]
    scored = run_coroutine(score_group(task, env, rollouts)).rollouts
    return {
        "solved": [bool(family.success(rollout)) for rollout in scored],
        "texts": [rollout.text for rollout in scored],
        "generated": sum(actor.generated_tokens.values()),
        "read": sum(actor.read_tokens.values()),
    }


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of the table, in Markdown, and the differences that were fixed beforehand."""
    for arm in ARMS:
        found = [line for line in lines if line["arm"] == arm]
        if not found:
            continue
        solved = np.array([line["solved"] for line in found], dtype=float)
        cells = " | ".join(f"{share:.0%}" for share in solved.mean(0))
        tokens = [np.mean([line[name] for line in found]) for name in ("generated", "read")]
        yield f"| {arm} | {cells} | {tokens[0]:.0f} | {tokens[1]:.0f} |"
        low, high = bootstrap_interval([solved[:, -1] - solved[:, 0]])
        gain = solved[:, -1].mean() - solved[:, 0].mean()
        yield f"{arm}: fifth revision less first answer {gain:+.3f} [{low:+.3f}, {high:+.3f}]"


def main(
    file: Annotated[Path, typer.Argument(help="Has a JSON line for each arm and task.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
    trained: Annotated[Path | None, typer.Option(help="Run of PIPELINE.")] = None,
    only_table: Annotated[bool, typer.Option("--table", help="Print the table alone.")] = False,
) -> None:
    """Answer the tasks in each arm, and print the table."""
    family = TRAINING.FAMILIES[FAMILY]
    tasks = [] if only_table else TRAINING.surveyed(family).load()[:TASKS]
    start = None if only_table else replace(BASE.policy, model=model, lora=None).build()
    for arm, strategy in ARMS.items():
        if only_table or (arm == "after SRPO" and trained is None):
            continue
        policy = load_policy(trained / "srpo")[0] if arm == "after SRPO" and trained else start
        for task in tasks:
            line = json.dumps(
                {"arm": arm, "task": task.key, **answers(policy, family, task, strategy)}
            )
            with file.open("a") as appended:
                appended.write(line + "\n")
    for row in table([json.loads(line) for line in file.read_text().splitlines()]):
        print_line(row)


if __name__ == "__main__":
    typer.run(main)
