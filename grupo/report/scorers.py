"""The quality of a head that scores answers, as a table for the terminal."""

from collections.abc import Iterator

from rich.table import Table

from grupo.report.escape import literal, literal_line
from grupo.rollouts.eval_result import Proportion
from grupo.rollouts.scorer_result import ScorerResult

MEANINGS = {
    "margin": "one answer is better than another",
    "logit": "an answer is good",
    "probability": "an answer is good",
}


def scorer_table(result: ScorerResult) -> Table:
    """Order of pairs, best-of-n, calibration and steps, each with its 95 % interval over tasks."""
    title = f"head {result.head!r} on {result.num_answers:,} answers to {result.num_tasks:,} tasks"
    table = Table(title=literal_line(f"{title} (95 % intervals over tasks)"), title_style="")
    table.add_column("")
    table.add_column("", justify="right")
    for name, share in _rows(result):
        table.add_row(literal(name), literal(str(share)))
    return table


def _rows(result: ScorerResult) -> Iterator[tuple[str, Proportion]]:
    yield "pairs in the right order", result.pairs
    yield f"calibration error: {MEANINGS[result.output]}", result.calibration
    if result.calibrated:
        yield "calibration error after a logistic fit", result.calibrated
    for name, choice in result.choices.items():
        n = {choice.smallest, choice.largest}
        size = " to ".join(map(str, sorted(n)))
        yield f"best of {size} by the {name}", choice.chosen
        yield "    above a random one of them", choice.gain
    for choice in list(result.choices.values())[:1]:
        yield "    a good one among them", choice.possible
    if result.steps:
        yield "F1 of the first wrong step", result.steps


def scorer_lines(result: ScorerResult) -> Iterator[str]:
    """Sentences about the pairs and the lowest steps."""
    yield (
        f"{result.num_pairs:,} pairs of a good and a bad answer to the same task, of which"
        f" {result.num_ties:,} have equal scores and count as half."
    )
    if result.minimum_at_last is not None:
        yield (
            f"The lowest step is the last one in {100 * result.minimum_at_last:.0f} % of the"
            " answers with two labelled steps or more."
        )
