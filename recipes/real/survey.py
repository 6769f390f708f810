"""A survey of a small real model: pass@1 and pass@8 on families of tasks.

python recipes/real/survey.py FOLDER --model PATH               the survey, and the page of it
python recipes/real/survey.py FOLDER --model PATH --wordings    before it: a comparison of wordings

FOLDER receives `real_survey.jsonl`, a line for each family, and `real_survey.md`. Families that the
file has are not repeated. `docs/real_survey.md` is the page of SmolLM2-135M-Instruct.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grupo.evidence.real_models.survey_page import PART_SURVEY, PART_WORDINGS, family_page
from grupo.evidence.survey import FamilySurvey, FamilyTasks, survey_family
from grupo.evidence.survey.family_survey import append_survey, read_surveys
from grupo.util.console import out, print_line
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
RESULTS, PAGE = "real_survey.jsonl", "real_survey.md"
ATTEMPTS, ATTEMPTS_PER_WORDING = 16, 4
INTRODUCTION = """\
<!-- written by `python recipes/real/survey.py FOLDER --model PATH` from real_survey.jsonl -->
# What a small real model can do

SmolLM2-135M-Instruct on families of tasks, before any training: 50 tasks of each, 16 sampled
answers at temperature 1 and a greedy one to every task. Families of `recipes/real` that the table
lacks were not measured yet. The weights are the published ones rounded
to 4 bits, and computed with in float32. The prompt is one message of the user in the model's chat
template, whose own system message stays.

A family is a named function of `recipes/real`: it draws tasks in an order that is always the same,
and a reward of `grupo.rewards`, or a rule of `recipes/real/answers.py`, scores the answers.
`python recipes/real/survey.py FOLDER --model PATH` repeats this page; families that FOLDER has are
not repeated. `pip install "grupo[survey]"` installs what four families need: `countryinfo`,
`vaderSentiment` and `py3langid`.

A recipe trains the model on a family:

```console
$ grupo train recipes/real/two_digit_sums.py:RECIPE --model PATH
$ grupo train recipes/real/comparable.py:capitals --model PATH
```

`comparable.py` has a recipe for each family with pass@8 between 5 and 90 %: on others, few groups
have both right and wrong answers.

Notes on what the numbers are about:

* Rules read answers leniently: a number is the last one of the text, a word is what follows the
  last "is" or colon of the first line. A capital or a currency is right if it occurs.
* Texts of `package_summaries` are the descriptions of the packages that are installed, so that
  other tasks come with another environment; an answer is right from a ROUGE-L of 0.25 on.
* `claimed_sums` asks about sums with a result; half of the results are wrong, by 1, 2 or 10. The
  results are not answers of the model.
* `sums_2_digits` has the wording of the first runs with this model, so that it can be compared with
  them; another wording is better.
* No family uses WordNet, because no small package carries its data; `opposites` is a list by hand.
"""
TOKENS_PER_SECOND = 100  # of the smallest model on one busy core, for the first estimate


def jobs(part: str) -> Iterator[tuple[str, int, FamilyTasks]]:
    """Family, wording and tasks of each measurement."""
    for name, family in TRAINING.FAMILIES.items():
        if part == PART_SURVEY:
            yield name, 0, TRAINING.surveyed(family)
        else:
            for index in range(len(family.wordings)):
                yield name, index, TRAINING.compared(family, index)


def estimate(pending: list[tuple[str, int, FamilyTasks]], attempts: int) -> str:
    """The work of the measurements, and their time at most."""
    rollouts = tokens = 0
    for _, _, tasks in pending:
        own = tasks.count * (attempts + 1)
        rollouts += own
        tokens += own * tasks.family.max_new_tokens
    minutes = tokens / TOKENS_PER_SECOND / 60
    return (
        f"measurements left: {len(pending)}, answers: {rollouts:,}, tokens at most: {tokens:,},"
        f" minutes at {TOKENS_PER_SECOND} tokens a second: {minutes:.0f}"
    )


def run(file: Path, model: str, part: str) -> None:
    """Make all measurements that the file lacks, and append each when it has ended."""
    attempts = ATTEMPTS if part == PART_SURVEY else ATTEMPTS_PER_WORDING
    done = {(x["part"], x["family"], x["wording"]) for x, _ in read_surveys(file)}
    pending = [
        job for job in jobs(part) if (part, job[0], job[2].family.wordings[job[1]]) not in done
    ]
    print_line(estimate(pending, attempts))
    longest = max((tasks.family.max_new_tokens for _, _, tasks in pending), default=1)
    policy = TRAINING.chat_model(model, longest).build()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=out) as progress:
        bar = progress.add_task("", total=len(pending))
        for name, index, tasks in pending:
            progress.update(bar, description=name)
            survey = survey_family(policy, tasks, attempts)
            labels = {"part": part, "family": name, "wording": tasks.family.wordings[index]}
            append_survey(file, labels, survey)
            progress.advance(bar)
            progress.print(summary(name, survey))


def summary(name: str, survey: FamilySurvey) -> str:
    """A line of the terminal."""
    rates = " ".join(f"pass@{k} {bounds[0]:.3f}" for k, bounds in survey.pass_at_k.items())
    speed = survey.tokens / survey.seconds
    return f"{name}: greedy {survey.greedy[0]:.3f} {rates}, {speed:.0f} tokens a second"


def main(
    folder: Path,
    model: Annotated[str, typer.Option(help="Folder or hub name of a model.")] = TRAINING.MODEL,
    wordings: Annotated[bool, typer.Option("--wordings", help="Compare wordings.")] = False,
) -> None:
    """Measure all families and write the page."""
    folder.mkdir(parents=True, exist_ok=True)
    run(folder / RESULTS, model, PART_WORDINGS if wordings else PART_SURVEY)
    page = family_page(folder / RESULTS, TRAINING.FAMILIES, INTRODUCTION)
    (folder / PAGE).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(typer.run(main))
