"""The candidates as text for a terminal."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from grupo.core.paper import SOURCE_KINDS
from grupo.evidence.suggest.candidates import Candidate
from grupo.evidence.suggest.symptoms import Symptom

WIDTH = 100  # columns
INDENT = " " * 13  # of the texts beside their labels

CAVEAT = (
    "Verdicts are about environments of a few dozen tasks and a softmax policy: they say nothing"
    " certain about yours. Compare the candidates on your tasks:"
)


def describe_symptoms(symptoms: Sequence[Symptom]) -> Iterator[str]:
    """One line for each problem of a run."""
    if not symptoms:
        yield "The run's metrics show none of the problems that the rules know."
    for symptom in symptoms:
        yield f"{symptom.problem}: {symptom.details.removesuffix('.')}."


def describe_candidates(
    candidates: Sequence[Candidate], recipe: str = "", max_new_tokens: int = 0
) -> Iterator[str]:
    """The lines about all candidates, and how to compare them.

    Args:
        candidates: The candidates.
        recipe: The recipe to which the commands apply them, as an argument of a command line; ""
            is the quickstart's.
        max_new_tokens: The token limit of the recipe's answers, for methods that need it; 0 is the
            quickstart's.
    """
    recipe += " " * bool(recipe)
    options = [_method_option(c.entry.example, max_new_tokens) for c in candidates]
    for number, (candidate, option) in enumerate(zip(candidates, options, strict=True), 1):
        command = f"grupo train {recipe}{option}"
        yield from map(_wrapped, _describe(number, candidate, command))
        yield ""
    yield textwrap.fill(CAVEAT, WIDTH)
    yield f"grupo compare {recipe}{' '.join(options)} --out runs/compared"


def _describe(number: int, candidate: Candidate, command: str) -> Iterator[str]:
    entry = candidate.entry
    paper = entry.arxiv and f", arXiv:{entry.arxiv}"
    yield f"{number}. {entry.key}: {entry.claim} ({entry.authors}, {entry.year}{paper})"
    for reason in candidate.reasons:
        about = f"{reason.question} {reason.answer}: " if reason.answer else ""
        yield f"   why       {about}{reason.text}"
    yield f"   use       {entry.use}"
    yield from _describe_evidence(candidate)
    if entry.source:
        yield f"   source    {SOURCE_KINDS[entry.source.kind]} (docs/fidelity.md)"
    for text in entry.missing:
        yield f"   missing   {text}"
    for text in candidate.needs:
        yield f"   needs     {text}"
    yield f"   try       {command}"


def _wrapped(line: str) -> str:
    """A line of at most `WIDTH` columns; commands stay on one line."""
    if line.startswith("   try"):
        return line
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False)


def _describe_evidence(candidate: Candidate) -> Iterator[str]:
    evidence = candidate.evidence
    compared = [*evidence.atlas, *([evidence.claim] if evidence.claim else [])]
    first = "none: no claim of this method was tested by a comparison"
    further = [part for part in (evidence.smoke, evidence.bias) if part is not None]
    for number, part in enumerate([*(compared or [first]), *further]):
        yield f"             {part}" if number else f"   evidence  {part}"


def _method_option(example: str, max_new_tokens: int) -> str:
    """The option of the command line for a method, with the recipe's own length limit."""
    if max_new_tokens:
        example = re.sub(r"\bmax_length=\d+", f"max_length={max_new_tokens}", example)
    return f'--method "{example}"' if "(" in example else f"--method {example}"
