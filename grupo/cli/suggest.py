"""`grupo methods suggest`: five questions, or a finished run, and three candidates."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from grupo.cli.paths import run_folder_argument
from grupo.evidence.suggest.questions import QUESTIONS, Answers, Question, check_answer
from grupo.util.console import print_line
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON
from grupo.util.user_paths import shell_path


def suggest(
    policy: Annotated[str, Option(metavar="KIND", help=QUESTIONS[0].help)] = "",
    reward: Annotated[str, Option(metavar="KIND", help=QUESTIONS[1].help)] = "",
    extra: Annotated[str, Option(metavar="KIND", help=QUESTIONS[2].help)] = "",
    problem: Annotated[str, Option(metavar="KIND", help=QUESTIONS[3].help)] = "",
    sampler: Annotated[str, Option(metavar="KIND", help=QUESTIONS[4].help)] = "",
    run: Annotated[
        Path | None,
        Option(metavar="RUN", parser=run_folder_argument, help="A run that answers instead."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Name three candidate methods, with reasons and evidence, for the answers to five questions.

    Questions without an option are asked on a terminal.
    """
    from grupo.evidence.suggest.candidates import suggest_methods
    from grupo.evidence.suggest.symptoms import read_answers
    from grupo.evidence.suggest.text import describe_candidates, describe_symptoms

    given = {"policy": policy, "reward": reward, "extra": extra} | {
        "problem": problem,
        "sampler": sampler,
    }
    found = read_answers(run) if run else None
    answers = _complete(
        {**(found.answers if found else {}), **{k: v for k, v in given.items() if v}}
    )
    candidates = suggest_methods(answers)
    symptoms = found.symptoms if found else ()
    if as_json:
        data = {
            "answers": vars(answers),
            "symptoms": [vars(symptom) for symptom in symptoms],
            "candidates": [candidate.to_data() for candidate in candidates],
        }
        return print_line(json.dumps(data, indent=1))
    options = " ".join(f"--{name} {answer}" for name, answer in vars(answers).items())
    print_line(f"Answers: {options}")
    for line in describe_symptoms(symptoms) if found else ():
        print_line(line)
    print_line("")
    recipe = shell_path(run / RECIPE_JSON) if run else ""
    for line in describe_candidates(candidates, recipe, found.max_new_tokens if found else 0):
        print_line(line)


def _complete(given: Mapping[str, str]) -> Answers:
    """The answers with those that are not given asked on the terminal.

    Raises:
        ConfigError: An answer is missing and standard input is no terminal, or one is not allowed.
    """
    policy = given.get("policy", "")
    for question in QUESTIONS:
        if answer := given.get(question.name):
            check_answer(question, answer, policy)
    missing = [question for question in QUESTIONS if question.name not in given]
    if missing and not sys.stdin.isatty():
        options = "; ".join(f"--{q.name}: {', '.join(q.allowed(policy))}" for q in missing)
        raise ConfigError(
            f"{missing[0].name}: no answer is given, and standard input is no terminal that could"
            f" be asked. Give {options}; or --run RUN."
        )
    answers = dict(given)
    for question in missing:
        answers[question.name] = _ask(question, answers.get("policy", ""))
    return Answers(**answers)


def _ask(question: Question, policy: str) -> str:
    """The answer typed to a question, by number or name; asked again until it is one of them."""
    allowed = question.allowed(policy)
    print_line(question.text)
    for number, (name, meaning) in enumerate(allowed.items(), 1):
        print_line(f"  {number:2}  {name:15} {meaning}")
    by_number: dict[str, str] = {str(number): name for number, name in enumerate(allowed, 1)}
    while True:
        typed = str(typer.prompt(question.name, default="1")).strip()
        answer = by_number.get(typed, typed)
        try:
            check_answer(question, answer, policy)
        except ConfigError as error:
            print_line(str(error))
        else:
            return answer
