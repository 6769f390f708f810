"""The page of the claims is made from the table and the stored runs."""

from pathlib import Path

import pytest

from grupo.evidence.claims.comparisons import ArmComparisonResult, Verdict
from grupo.evidence.claims.page import claims_page
from grupo.evidence.claims.repetition_section import repetition_cell, repetition_section
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.claims.verdicts import ClaimResult
from grupo.util.statistics import Interval

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def committed() -> Results:
    return Results.read(DOCS / "claims.jsonl")


@pytest.fixture(scope="module")
def page(committed) -> str:
    return claims_page(committed)


def test_the_committed_page_is_made_from_the_committed_runs(page):
    assert page == (DOCS / "claims.md").read_text(encoding="utf-8"), (
        "run: python -m grupo.evidence.claims docs/claims.md --minutes 0"
    )


def test_every_claim_and_setting_is_on_the_page(page):
    for claim in ALL_CLAIMS:
        assert f"(methods/{claim.key}.md) | {claim.sentence} |" in page
        assert (DOCS / "methods" / f"{claim.key}.md").exists()
    for name in SETTINGS:
        assert f"\n## {name}\n" in page


def claim_result(first, verdict, repeated=0.25):
    """A result whose first comparison differs by 0.5."""

    def outcome(difference):
        interval = Interval(difference, difference - 0.125, difference + 0.125)
        return ArmComparisonResult(first, 8, 0.75, 0.25, interval, 1.0)

    return ClaimResult(outcome(0.5), first, outcome(repeated), verdict)


def test_the_section_counts_repeated_claims_and_shows_those_that_are_not_confirmed():
    results = [
        claim_result(Verdict.HOLDS, Verdict.HOLDS),
        claim_result(Verdict.HOLDS, Verdict.NOT_CONFIRMED, repeated=-0.25),
        claim_result(Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD_ONCE),
        claim_result(Verdict.UNDECIDED, Verdict.UNDECIDED),
    ]
    claims = ALL_CLAIMS[:4]
    by_key = {claim.key: result for claim, result in zip(claims, results, strict=True)}
    text = " ".join(repetition_section(claims, by_key).split())
    assert "pairs of the seeds 16 to 31," in text
    assert "**1 of 2 repeated claims are confirmed.** 3 claims were decided" in text
    assert "of which 1 have not been repeated" in text
    assert "If no arm differed from another, 0.1 of 2 would be confirmed" in text
    # 0.2 of 3 by chance: 2 x (1 - 0.2 / 3 x 0.95)
    assert "had decided 0.2 of 4 claims by chance" in text
    assert "if every other were confirmed, 1.9 would be" in text
    (row,) = [line for line in repetition_section(claims, by_key).splitlines() if "|" in line][2:]
    assert row.endswith("| holds | +0.5 [+0.375, +0.625] | -0.25 [-0.375, -0.125] |")
    assert claims[1].sentence in row
    assert [repetition_cell(result) for result in results] == [
        "+0.25 [+0.125, +0.375]",
        "-0.25 [-0.375, -0.125]",
        "",
        "",
    ]
