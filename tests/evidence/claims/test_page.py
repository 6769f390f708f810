"""The page of the claims is made from the table and the stored runs."""

from pathlib import Path

import pytest

from grupo.evidence.claims.claim import Arm
from grupo.evidence.claims.comparisons import ArmComparison, Verdict, compare
from grupo.evidence.claims.page import claims_page, passes, verdict_in
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


def test_an_environment_passes_if_the_oracle_wins_and_the_control_shows_nothing(committed):
    setting = SETTINGS["unlabelled"]
    key = ("unlabelled", "grpo(kl_coef=0.0)")

    def outcome(shift):
        results = Results()
        noise = [0.01, -0.01] * 8
        for seed, x in enumerate(noise):
            results.metrics[("unlabelled", "oracle", seed)] = {"success": 0.5 + shift + x}
            results.metrics[(*key, seed)] = {"success": 0.5}
        comparison = ArmComparison(setting, Arm("oracle"), Arm(key[1]), "success")
        return compare(comparison, results)

    wins, equal, loses = outcome(0.3), outcome(0.0), outcome(-0.3)
    assert wins.verdict is Verdict.HOLDS
    assert passes(wins, equal)
    assert not passes(equal, equal)
    assert not passes(loses, equal)
    assert not passes(wins, wins)
    pending = compare(ArmComparison(setting, Arm("oracle"), Arm(key[1]), "success"), Results())
    assert verdict_in((wins, equal), Verdict.HOLDS) is Verdict.HOLDS
    assert verdict_in((wins, pending), Verdict.HOLDS) is Verdict.PENDING
    assert verdict_in((equal, equal), Verdict.HOLDS) is Verdict.INVALID
    assert verdict_in((wins, loses), Verdict.UNDECIDED) is Verdict.INVALID
