"""Program search: the chosen program, ties, programs without a score, tokens, bad input."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from scipy.stats import binom

from grupo.core.types import RewardResult, Task
from grupo.core.validation import PromptLimit
from grupo.distributed.base import SINGLE_RANK
from grupo.pipeline import Pipeline, ProgramStage, run_pipeline
from grupo.pipeline.data_stage import SamplingInputs
from grupo.pipeline.load import load_pipeline_file
from grupo.pipeline.program_search import (
    NoProgramError,
    ScoredProgram,
    best_program,
    search_programs,
)
from grupo.pipeline.program_stage import PROGRAM_FILE
from grupo.pipeline.validate import check_pipeline
from grupo.report.stages import stage_lines
from grupo.rollouts.turns import WithProgram
from grupo.util.errors import ConfigError
from tests.helpers.pipelines import short
from tests.helpers.scripted_actor import Script

WRITE, FORM = "W{task}>", "{program}|{task}>"
ACCURACIES = (0.3, 0.5, 0.9, 0.6, 0.4)
TOML_RECIPE = short("model")


@dataclass(frozen=True)
class CountedScript(Script):
    """A scripted actor that counts letters as tokens, together with all its forks."""

    @property
    def generated_tokens(self):
        return {"": sum(len(text) for _, text in self.log)}

    @property
    def read_tokens(self):
        return {"": sum(len(context) for context, _ in self.log)}


@dataclass(frozen=True)
class ScriptedPolicy:
    """A policy of one scripted actor."""

    next_letter: Callable[[str, int], str]
    prompt_limit: PromptLimit | None = None
    log: list[tuple[str, str]] = field(default_factory=list)

    def actor(self, key):
        return CountedScript(self.next_letter, self.log, stop_strings=("\n",))


@dataclass(frozen=True)
class Answers:
    """Environment of one answer: 1 for "y.", 0 for "n.", a failure for any other."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        known = {"y.": RewardResult(1.0), "n.": RewardResult(0.0)}
        return [known.get(r.text, RewardResult(error="no such answer")) for r in rollouts]


def solves(program, task):
    """Whether one of the programs 0 to 4 solves one of the tasks 5 to 54: at its accuracy."""
    return (7 * task + 3) % 50 < 50 * ACCURACIES[program]


def emulates(context, key):
    """Writes the program of a task's number, and answers as it does."""
    prompt, _, begun = context.rpartition(">")
    if prompt.startswith("W"):
        return f"p{prompt[1:]}."[len(begun)]
    program, task = prompt.removeprefix("p").split(".|")
    return ("y." if solves(int(program), int(task)) else "n.")[len(begun)]


def searched(next_letter=emulates, num_programs=5, num_items=50, prompt_limit=None):
    policy: Any = ScriptedPolicy(next_letter, prompt_limit)
    tasks = [Task(str(i), str(i), str(i)) for i in range(num_programs + num_items)]
    recipe = TOML_RECIPE.replace(env=Answers())
    inputs = SamplingInputs(policy, tasks)
    fields = {"num_programs": num_programs, "write": WRITE, "form": FORM}
    return search_programs(recipe, inputs, **fields, ranks=SINGLE_RANK), policy


def test_each_program_is_scored_on_all_items_and_the_best_is_chosen():
    search, policy = searched()
    assert [program.text for program in search.programs] == ["p0.", "p1.", "p2.", "p3.", "p4."]
    assert [program.score for program in search.programs] == list(ACCURACIES)
    assert {program.num_scored for program in search.programs} == {50}
    assert search.chosen == 2
    # the programs are tried on none of the tasks that they were written for
    tried = {context.split("|")[1] for context, _ in policy.log if context[0] == "p"}
    assert tried == {f"{i}>" for i in range(5, 55)}


def test_all_tokens_of_programs_and_answers_are_counted():
    search, _ = searched()
    # 5 programs of 3 letters, 250 answers of 2
    assert search.generated == {"": 5 * 3 + 250 * 2}
    # W0> is 3 letters; p0.|5> is 6, p0.|54> is 7
    assert search.read == {"": 5 * 3 + 5 * (5 * 6 + 45 * 7)}


def test_the_best_of_five_rules_is_chosen_in_more_than_99_percent_of_seeds():
    chosen = []
    for seed in range(1000):
        rng = Random(seed)
        scores = [sum(rng.random() < p for _ in range(50)) / 50 for p in ACCURACIES]
        programs = [ScoredProgram(str(i), score, 50) for i, score in enumerate(scores)]
        chosen.append(best_program(programs))
    assert chosen.count(2) > 990
    # independently: the third rule has more right answers than all others
    others = [binom(50, p) for p in (0.3, 0.5, 0.6, 0.4)]
    exact = 0.0
    for k in range(1, 51):
        all_below = 1.0
        for other in others:
            all_below *= other.cdf(k - 1)
        exact += binom.pmf(k, 50, 0.9) * all_below
    assert exact > 0.99
    assert chosen.count(2) / 1000 == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(
    ("programs", "index"),
    [
        ([("abc", 0.5, 9), ("ab", 0.5, 9), ("xy", 0.5, 9)], 1),  # the shortest, then the first
        ([("a", 0.5, 8), ("abc", 0.5, 9)], 1),  # more answers were scored
        ([("a", None, 0), ("abc", 0.0, 1)], 1),  # a score of 0 is a score
        ([("a", 0.5, 9), ("abc", 0.6, 1)], 1),
    ],
)
def test_ties_go_to_more_scored_answers_then_to_the_shortest_program(programs, index):
    assert best_program([ScoredProgram(*program) for program in programs]) == index


def test_empty_and_repeated_programs_are_counted_and_tried_once():
    written = {"0": "a.", "1": "\n", "2": "a.", "3": "b."}

    def writes(context, key):
        prompt, _, begun = context.rpartition(">")
        if prompt.startswith("W"):
            return written[prompt[1:]][len(begun)]
        return "y."[len(begun)]

    search, _ = searched(writes, 4, 2)
    assert [program.text for program in search.programs] == ["a.", "b."]
    assert (search.num_empty, search.num_repeated) == (1, 1)


def test_failed_answers_are_left_out_of_the_mean_and_named():
    def fails(context, key):
        if context.startswith("p1.|") and context.endswith("5>"):
            return "."
        return emulates(context, key)

    search, _ = searched(fails, 2, 4)
    program = search.programs[1]
    assert program.num_scored == 3
    assert program.problem == "no such answer"
    assert program.score == pytest.approx(sum(solves(1, t) for t in (2, 3, 4)) / 3)


def test_a_program_longer_than_the_context_is_not_tried():
    def long_for_1(context, key):
        prompt, _, begun = context.rpartition(">")
        if prompt == "W1":
            return "x" if len(begun) < 30 else "."
        return emulates(context, key)

    limit = PromptLimit(lambda rollout, text: text, 24, 4)
    search, policy = searched(long_for_1, 2, 4, limit)
    assert search.programs[1] == ScoredProgram(
        "x" * 30 + ".", problem="the program leaves no room for an answer"
    )
    assert search.chosen == 0
    assert not any(context.startswith("x") for context, _ in policy.log)


def test_a_search_without_any_score_ends_with_one_message():
    with pytest.raises(NoProgramError, match=r"None of 2 .* has a score: no such answer \(2\)"):
        searched(lambda context, key: emulates(context, key) if context[0] == "W" else ".", 2, 3)
    with pytest.raises(NoProgramError, match="the policy wrote none"):
        best_program([])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"items": 0}, r"ProgramStage\.items: 0\. Allowed: 1 or more"),
        ({"programs": 0}, r"ProgramStage\.programs: 0\. Allowed: 1 or more"),
        ({"write": "Write!"}, r"ProgramStage\.write: 'Write!' lacks \{task\}"),
        ({"write": "{task}{anwser}"}, r"ProgramStage\.write: \{anwser\} has no value here"),
        ({"form": "{task}"}, r"ProgramStage\.form: '\{task\}' lacks \{program\}"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        ProgramStage("p", TOML_RECIPE, **fields)


def test_too_few_tasks_are_refused_before_any_stage(model):
    stage = ProgramStage("p", short(model), programs=4, items=50, write="{task}")
    message = r"p: ProgramStage\.items: 50\. Programs are written for 4 of \d+ .*: at most \d+"
    with pytest.raises(ConfigError, match=message):
        check_pipeline(Pipeline((stage,)))


def test_a_form_with_the_answer_needs_tasks_with_answers():
    stage = ProgramStage("p", TOML_RECIPE, programs=2, items=1)
    tasks = [Task("a", "Q", "1"), Task("b", "R"), Task("c", "S")]
    with pytest.raises(ConfigError, match=r"ProgramStage\.write: \{answer\}, and task b has no"):
        stage.check_tasks(tasks)
    replace(stage, write="{task}").check_tasks(tasks)


def test_a_recipe_file_spells_the_stage(tmp_path):
    (tmp_path / "p.toml").write_text(
        '[[stages]]\ntype = "ProgramStage"\nname = "rules"\nprograms = 3\nitems = 4\n'
        'recipe = "tests.pipeline.test_program_search:TOML_RECIPE"\nwrite = "{task}"\n'
    )
    (stage,) = load_pipeline_file(tmp_path / "p.toml").stages
    assert isinstance(stage, ProgramStage)
    assert (stage.programs, stage.items, stage.output_name) == (3, 4, PROGRAM_FILE)


@pytest.mark.slow
def test_the_stage_writes_the_program_and_all_scores_and_the_strategy_reads_it(model, tmp_path):
    recipe = short(model)
    stage = ProgramStage("p", recipe, programs=3, items=4, write="{task}", form="{program}{task}")
    root = run_pipeline(Pipeline((stage,)), tmp_path / "run")
    summary = json.loads((root / "p" / "summary.json").read_text())
    chosen = summary["programs"][summary["chosen"]]
    assert (root / "p" / PROGRAM_FILE).read_text() == f"{chosen['text']}\n"
    assert chosen["score"] == max(program["score"] for program in summary["programs"])
    assert len(summary["programs"]) + summary["empty"] + summary["repeated"] == 3
    longest = recipe.policy.max_new_tokens
    assert 0 < summary["tokens"] <= (3 + 3 * 4) * longest
    assert summary["read_tokens"] > 0
    assert [(line.stage, line.work, line.state) for line in stage_lines(root)] == [
        ("p", "program", "done")
    ]
    strategy = WithProgram(str(root / "p" / PROGRAM_FILE))
    assert strategy.load().program == chosen["text"].strip()
