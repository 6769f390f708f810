"""The section about repetitions on the page of the claims."""

from collections.abc import Mapping, Sequence

from grupo.compare.table_formats import markdown
from grupo.evidence.claims.claim import Claim
from grupo.evidence.claims.comparisons import DESIGN, Verdict
from grupo.evidence.claims.page_format import difference_text, method_link
from grupo.evidence.claims.repetition import (
    ALPHA,
    REPETITION_DESIGN,
    expected_confirmed,
)
from grupo.evidence.claims.verdicts import ClaimResult

TEXT = """\
## Repetition of the decided claims

A comparison that is decided once may be decided by chance, and one that stops early shows a
difference that is too large on average. Each decided claim is therefore repeated with {pairs}
pairs of the seeds {first} to {last}, which no first comparison has, in the order of this page, by
`python -m grupo.evidence.claims docs/claims.md --repeat`. It stays decided if the repetition
differs in the direction of the first verdict at {alpha:.0%}, one-sided: an exact sign-flip test
with one look. The interval of a repetition, of {coverage:.0%}, excludes 0 in that case. Otherwise
the claim is *not confirmed*, which is no verdict in the other direction. *Decided once*: the
repetition has not been run yet.

**{confirmed} of {repeated} repeated claims are confirmed.** {decided} claims were decided by their
first comparison, of which {waiting} have not been repeated. If no arm differed from another,
{by_chance:.1f} of {repeated} would be confirmed. If the first comparisons had decided {chance:.1f}
of {tested} claims by chance, as their error rate allows, and if every other were confirmed,
{expected:.1f} would be.
"""


def repetition_section(claims: Sequence[Claim], results: Mapping[str, ClaimResult]) -> str:
    """The rule, the counts, and the claims that were not confirmed."""
    decided = [claim for claim in claims if results[claim.key].is_decided]
    repeated = [claim for claim in decided if results[claim.key].is_repeated]
    lost = [c for c in repeated if results[c.key].verdict is Verdict.NOT_CONFIRMED]
    seeds = range(DESIGN.max_pairs, DESIGN.max_pairs + REPETITION_DESIGN.max_pairs)
    text = TEXT.format(
        pairs=REPETITION_DESIGN.max_pairs,
        first=seeds[0],
        last=seeds[-1],
        alpha=ALPHA,
        coverage=1 - REPETITION_DESIGN.alpha,
        confirmed=len(repeated) - len(lost),
        repeated=len(repeated),
        decided=len(decided),
        waiting=len(decided) - len(repeated),
        by_chance=ALPHA * len(repeated),
        chance=DESIGN.alpha * len(claims),
        tested=len(claims),
        expected=expected_confirmed(len(repeated), len(decided), len(claims)),
    )
    return "\n".join([text, _lost_table(lost, results)] if lost else [text])


def _lost_table(lost: Sequence[Claim], results: Mapping[str, ClaimResult]) -> str:
    """The claims whose repetition did not confirm the first verdict."""
    header = ["not confirmed", "claim", "first verdict", "first difference", "repetition"]
    rows = [
        [
            method_link(claim.key),
            claim.sentence,
            result.first,
            difference_text(result.outcome.difference),
            difference_text(result.repetition.difference),
        ]
        for claim in lost
        for result in [results[claim.key]]
    ]
    return markdown([header, *rows])


def repetition_cell(result: ClaimResult) -> str:
    """The difference of a repetition in a table; "" if there is none."""
    return difference_text(result.repetition.difference) if result.is_repeated else ""
