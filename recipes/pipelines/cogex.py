"""CoGEX: one program for all tasks, found by search, against a chain of thoughts for each task.

Weir et al., 2024, arXiv:2404.01019. A task names a rule by a cue, `end : owl fox hen bee ?`, and
the policy half understands cues: of the rules that it writes for one, RIGHT are the right ones. It
carries out rules well. A chain writes a rule and its result for each task anew; the search writes
10 rules, tries each on 50 tasks with answers, and keeps one.

python recipes/pipelines/cogex.py FOLDER                    # the table of the toy model
python recipes/pipelines/cogex.py FOLDER --model smollm2    # the same stage, short, of a chat model

Named before the first run: `right`, the share of right answers to 100 other tasks, and `tokens`,
all generated and read tokens of an answer, of which a hundredth part of the search is one. The
program is compared with the vote of fewest chains that has at least as many tokens, over 8 seeds,
whose cues take turns. `break even` is the number of tasks from which the program has fewer tokens
than that vote.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import torch
import typer

from grupo.core.component import component
from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import demonstration_recipe, trained
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import Pipeline, ProgramStage, run_pipeline
from grupo.pipeline.program_stage import PROGRAM_FILE
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.strategy_attempts import attempt_tasks
from grupo.rollouts.turns import Vote, WithProgram
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.bm25 import words
from grupo.util.console import print_line

WORDS = ("owl", "fox", "hen", "bee", "ant", "cat", "dog", "pig")
Rule = Callable[[Sequence[str]], Sequence[str]]
RULES: Mapping[str, tuple[str, Rule]] = {  # by cue: the program, and what it does
    "begin": ("take the first word", lambda x: x[:1]),
    "after": ("take the second word", lambda x: x[1:2]),
    "before": ("take the third word", lambda x: x[2:3]),
    "end": ("take the last word", lambda x: x[-1:]),
    "turn": ("reverse all words", lambda x: x[::-1]),
}
CUES = tuple(RULES)
TASK = "{cue} : {words} ?\n"
WRITE, FORM = "{task}rule : ", "{program}\n{task}"
RIGHT = 0.4  # of the rules that the toy model writes
SEEDS, PROGRAMS, ITEMS, TESTED = 8, 10, 50, 100
VOTES = (2, 4, 8, 16)
ARCHITECTURE = LlamaArchitecture(64, 192, 2, 4, 64, 0.08)


def listed_task(cue: str, number: int) -> Task:
    """A task of a cue; equal numbers are equal tasks.

    >>> task = listed_task("end", 0)
    >>> task.prompt.split()[-2] == task.reference_answer
    True
    """
    chosen = random.Random(f"{cue} {number}").choices(WORDS, k=4)
    prompt = TASK.format(cue=cue, words=" ".join(chosen))
    return Task(f"{number} {prompt}", prompt, carried_out(cue, chosen))


def result(text: str) -> str:
    """The result in an answer: what follows the rule, if there is one.

    >>> result("take the last word : owl ."), result("owl .")
    ('owl', 'owl')
    """
    return text.rpartition(":")[2].strip(" .\n")


ENV = SingleTurn((RewardTerm("right", ExactMatch(result)),))


def example(number: int) -> Task:
    """A prompt with its answer: a rule for a task, a rule carried out, and a chain of both."""
    rng = random.Random(f"example {number}")
    cue = rng.choice(CUES)
    task = str(listed_task(cue, rng.randrange(10**6)).prompt)
    listed = task.removeprefix(f"{cue} : ").removesuffix(" ?\n").split()
    written = cue if rng.random() < RIGHT else rng.choice([c for c in CUES if c != cue])
    program, _ = RULES[written]
    if number % 3 == 0:
        return Task(str(number), WRITE.format(task=task), f"{program} .")
    if number % 3 == 1:
        return Task(str(number), task, f"{program} : {carried_out(written, listed)} .")
    other = rng.choice(CUES)
    prompt = FORM.format(program=f"{RULES[other][0]} .", task=task)
    return Task(str(number), prompt, f"{carried_out(other, listed)} .")


def carried_out(cue: str, listed: Sequence[str]) -> str:
    """The words that the rule of a cue returns."""
    return " ".join(RULES[cue][1](listed))


def save_model(folder: Path, steps: int = 600) -> Path:
    """Train the toy model, and return its folder."""
    tasks = [example(number) for number in range(32 * min(steps, 300))]
    texts = [
        text for task in tasks[:600] for text in (str(task.prompt), str(task.reference_answer))
    ]
    ARCHITECTURE.save_untrained(folder / "start", word_tokenizer(texts))

    def answer(task: Task) -> Sequence[str]:
        return [str(task.reference_answer)]

    recipe = demonstration_recipe(folder / "start", tasks, answer, steps=steps)
    trained(recipe).policy.export(folder / "model")
    return folder / "model"


@component
class ListedTasks:
    """The first tasks of a cue.

    Args:
        cue: The cue, a key of `RULES`.
        count: Number of tasks.
    """

    cue: str
    count: PositiveInt = PROGRAMS + ITEMS

    def load(self) -> Sequence[Task]:
        return [listed_task(self.cue, number) for number in range(self.count)]


def search(model: str, cue: str, seed: int) -> Pipeline:
    """The stage that searches the program of a cue."""
    recipe = Recipe(
        policy=CausalLM(model, max_new_tokens=12),
        env=ENV,
        tasks=ListedTasks(cue),
        eval_tasks=0,
        seed=seed,
    )
    return Pipeline((ProgramStage("rules", recipe, PROGRAMS, ITEMS, WRITE, FORM),))


def measured(
    policy: HasActor, tasks: Sequence[Task], strategy: TurnStrategy, seed: int, env: EnvSpec = ENV
) -> dict[str, float]:
    """The share of right answers, and the tokens of an answer."""
    attempts = attempt_tasks(policy, env, tasks, strategy, attempt_indices=range(1), key=seed)
    assert not attempts.errors, attempts.errors[:1]
    right = fmean(rollout.reward for rollout in attempts.rollouts[0])
    return {"right": right, "tokens": sum(attempts.mean_tokens_per_attempt.values())}


def arms_of_seed(folder: Path, model: str, seed: int) -> dict[str, dict[str, float]]:
    """The results of all arms with the cue of a seed."""
    cue = CUES[seed % len(CUES)]
    root = run_pipeline(search(model, cue, seed), folder / f"seed{seed}") / "rules"
    summary = json.loads((root / "summary.json").read_text())
    searched = summary["tokens"] + summary["read_tokens"]
    policy = CausalLM(model, max_new_tokens=12).build()
    tasks = [listed_task(cue, 10**6 + number) for number in range(TESTED)]
    with_program = WithProgram(str(root / PROGRAM_FILE), FORM)
    arms: dict[str, TurnStrategy] = {"one program": with_program, "a chain": single_response}
    arms |= {f"vote of {n} chains": Vote(n, result) for n in VOTES}
    found = {name: measured(policy, tasks, arm, seed) for name, arm in arms.items()}
    one = found["one program"]
    one |= {"own": one["tokens"], "search": searched, "is_right": is_right(root, cue)}
    one["tokens"] += searched / TESTED
    return found


def is_right(root: Path, cue: str) -> float:
    """1 if the kept program is the rule of a cue."""
    return float((root / PROGRAM_FILE).read_text().strip(" .\n") == RULES[cue][0])


def equal_vote(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """The vote of fewest chains that has at least as many tokens as the program."""
    tokens = {name: fmean(run["tokens"] for run in values) for name, values in runs.items()}
    votes = [f"vote of {n} chains" for n in VOTES]
    return next((name for name in votes if tokens[name] >= tokens["one program"]), votes[-1])


def toy_table(folder: Path) -> Iterator[str]:
    """The lines of the table of the toy model."""
    torch.set_num_threads(1)
    model = folder / "toy" / "model"
    if not model.is_dir():
        save_model(folder / "toy")
    runs: dict[str, list[dict[str, float]]] = {}
    for seed in range(SEEDS):
        for name, values in arms_of_seed(folder, str(model), seed).items():
            runs.setdefault(name, []).append(values)
    (folder / "toy.json").write_text(json.dumps(runs))
    equal = equal_vote(runs)
    yield paired_table(runs, ["right", "tokens"], equal)
    own, searched, is_kept = (
        fmean(run[name] for run in runs["one program"]) for name in ("own", "search", "is_right")
    )
    saved = fmean(run["tokens"] for run in runs[equal]) - own
    yield f"the right rule was kept by {is_kept:.3g} of the searches, of {searched:.0f} tokens"
    yield f"an answer with the program has {own:.3g} tokens; break even: {searched / saved:.0f}"


CHAT_TASK = "List: {words}. What is the last word of the list?"


@component
class ChatTasks:
    """Questions about lists of words, for a chat model."""

    def load(self) -> Sequence[Task]:
        return [chat_task(number) for number in range(7)]


def chat_task(number: int) -> Task:
    """A question about a list of four words."""
    listed = random.Random(f"chat {number}").sample(WORDS, 4)
    prompt = CHAT_TASK.format(words=", ".join(listed))
    return Task(f"chat {number}", ({"role": "user", "content": prompt},), listed[-1])


def names_last(task: Task, rollout: Rollout) -> float:
    """1 if the last word of the list is the only one that the answer names."""
    named = {word for word in words(rollout.text) if word in WORDS}
    return float(named == {task.reference_answer})


def chat_lines(folder: Path, model: str) -> Iterator[str]:
    """JSON lines: the search of a chat model, and answers without and with the program."""
    recipe = Recipe(
        policy=CausalLM(model, max_new_tokens=32, apply_chat_template=True),
        env=SingleTurn((RewardTerm("right", names_last),)),
        tasks=ChatTasks(),
        eval_tasks=0,
    )
    stage = ProgramStage("steps", recipe, programs=3, items=4)
    root = run_pipeline(Pipeline((stage,)), folder / "chat") / "steps"
    yield (root / "summary.json").read_text().strip()
    policy, tasks = recipe.policy.build(), [chat_task(number) for number in range(100, 106)]
    arms = {"single": single_response, "one program": WithProgram(str(root / PROGRAM_FILE))}
    for name, strategy in arms.items():
        found = measured(policy, tasks, strategy, 0, recipe.env)
        yield json.dumps({"arm": name, "tasks": len(tasks), **found})


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the model, the runs and the results.")],
    model: Annotated[str, typer.Option(help="A chat model in place of the toy model.")] = "",
) -> None:
    """Print the table of the toy model, or the results of a chat model."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in chat_lines(folder, model) if model else toy_table(folder):
        print_line(line)
        with (folder / "lines.txt").open("a") as file:
            file.write(f"{line}\n")


if __name__ == "__main__":
    typer.run(main)
