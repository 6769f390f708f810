"""The page of planted errors: `python -m tests.reference.assembled`."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.helpers.paths import ROOT
from tests.reference.assembled.inert_slots import stated_reasons
from tests.reference.assembled.planted_errors import (
    CANNOT_MATTER,
    ERRORS,
    SEEN,
    UNSEEN,
    outcome,
)
from tests.reference.assembled.references import ENTRIES, compared_method
from tests.reference.assembled_numpy.update import REFERENCES

PAGE = ROOT / "docs" / "assembled.md"
SYMBOLS = {SEEN: "seen", CANNOT_MATTER: "-", UNSEEN: "**unseen**"}
Outcomes = Mapping[tuple[str, str], str]

INTRODUCTION = """<!-- written by `python -m tests.reference.assembled` -->

# Assembled methods against independent references

Each of the {methods} methods is compared with an implementation of its paper's update in plain
numpy and float64 (`tests/reference/assembled_numpy`), which imports neither grupo nor torch. The
references were written from papers and released code, by authors who had not read the methods.
Where the paper could not be opened, they state what the record says: {reading_names}.

Compared are the rollouts that the filter keeps, the advantages, the number of updates of a step,
and for each update the loss and its gradient in every number of the policy, to {relative} of the
largest entry. After each update all numbers of the policy move, so that the next one sees other
ratios.

References in plain Python state the rest, for scripted policies. `tests/reference/rollouts`
compares the samplers of all methods that have one of their own: which rollouts are trained, in what
order, behind which prompt and with which reward. `tests/reference/steps` compares what changes from
step to step: curricula, replay, the reference policy, controllers and schedules.

`make test` compares each method on one batch, `make test-slow` on three.

## Planted errors

{errors} errors are planted into each method. An error is *seen* if it changes the method's update
on the batches of the comparison by more than a millionth, so that the comparison fails. An error is
marked "-" if it changes the update on no batch that was tried: the method has no such part. A
method with one update per step gets a second one in place of one update fewer.
"""

SLOTS_INTRODUCTION = """## Slots that do not act

A slot in which a method differs from GRPO acts if GRPO's component in its place changes the update
on some batch that was tried. All slots of filters, advantages, losses, aggregations and update
plans act but those of this table.
"""


def planted_outcomes() -> dict[tuple[str, str], str]:
    """The outcome of each error in each method, by method and error."""
    return {
        (name, label): outcome(compared_method(name), error, reference.options)
        for name, reference in sorted(REFERENCES.items())
        for label, error in ERRORS.items()
    }


def page(outcomes: Outcomes) -> str:
    """The page, in Markdown."""
    readings = sorted(name for name, r in REFERENCES.items() if r.source == "the record")
    introduction = INTRODUCTION.format(
        methods=len(REFERENCES),
        reading_names=", ".join(f"[{ENTRIES[x].name}](methods/{x}.md)" for x in readings),
        relative="1e-9",
        errors=len(ERRORS),
    )
    return "\n".join(
        [
            introduction,
            *_table(("error", "seen", "no such part", "unseen"), _counts(outcomes)),
            "",
            *_reasons(),
            SLOTS_INTRODUCTION,
            *_table(("slot", "why it does not act", "methods"), _inert_slots()),
            "",
            "## Method by method",
            "",
            *_table(("method", *ERRORS), _rows(outcomes)),
            "",
        ]
    )


def _counts(outcomes: Outcomes) -> Iterator[list[str]]:
    for label in ERRORS:
        counts = Counter(result for (_, error), result in outcomes.items() if error == label)
        yield [label, *(str(counts[result]) for result in (SEEN, CANNOT_MATTER, UNSEEN))]


def _reasons() -> Iterator[str]:
    """Why errors go unseen, and in which methods."""
    names = defaultdict(list)
    for name, reference in sorted(REFERENCES.items()):
        for label, reason in reference.not_compared.items():
            names[label, reason].append(ENTRIES[name].name)
    for (label, reason), unseen_in in names.items():
        yield f"* {label}, unseen in {', '.join(unseen_in)}: {reason}."
    yield ""


def _inert_slots() -> Iterator[list[str]]:
    """Slots that do not act, with the reason and the methods."""
    names = defaultdict(list)
    for (name, slot), reason in stated_reasons().items():
        names[slot, reason].append(f"[{ENTRIES[name].name}](methods/{name}.md)")
    for (slot, reason), of_methods in names.items():
        yield [slot, reason, ", ".join(of_methods)]


def _rows(outcomes: Outcomes) -> Iterator[list[str]]:
    for name in sorted(REFERENCES):
        link = f"[{ENTRIES[name].name}](methods/{name}.md)"
        yield [link, *(SYMBOLS[outcomes[name, label]] for label in ERRORS)]


def _table(header: tuple[str, ...], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
