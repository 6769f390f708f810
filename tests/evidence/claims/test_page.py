"""The page of the claims is made from the table and the stored runs."""

from pathlib import Path

import pytest

from grupo.evidence.claims.page import claims_page
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS

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
