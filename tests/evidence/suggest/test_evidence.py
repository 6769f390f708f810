"""evidence.json equals the data in docs/, with the same sentences."""

import json

from grupo.evidence.claims.comparisons import Verdict
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.suggest import evidence
from grupo.evidence.suggest.collect_evidence import collect_evidence
from grupo.evidence.suggest.evidence import find_evidence
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"


FAST_SETTINGS = ("padded", "terms", "judge")  # of the claims that are compared again


def test_the_file_is_what_the_command_writes():
    stored = json.loads((ROOT / "grupo" / "evidence" / "suggest" / evidence.FILE).read_text())
    claims = [claim for claim in ALL_CLAIMS if claim.setting in FAST_SETTINGS]
    collected = collect_evidence(DOCS, claims)
    assert {claim.key for claim in claims} <= {*collected}
    assert {claim.key for claim in ALL_CLAIMS} == {k for k, r in stored.items() if "claim" in r}
    for key, record in collected.items():
        for kind, values in record.items():
            assert stored[key][kind] == values, "run `make docs`"
    assert len(stored) == len(collected)


def test_a_claim_without_runs_holds_nothing(tmp_path):
    for name in ("smoke_training.md", "bias.md"):
        (tmp_path / name).write_text((DOCS / name).read_text())
    assert Results.read(tmp_path / "claims.jsonl").metrics == {}
    records = collect_evidence(tmp_path, ALL_CLAIMS[:3])
    assert {r["claim"]["verdict"] for r in records.values() if "claim" in r} == {"needs more runs"}


def test_evidence_about_dapo_is_that_of_the_pages():
    dapo = find_evidence("dapo")
    assert dapo.verdict in evidence.HOLDS
    assert dapo.claim.effect > 4
    assert (
        f"| [DAPO](methods/dapo.md) | {dapo.smoke.accuracy} |"
        in (DOCS / "smoke_training.md").read_text()
    )
    assert "7.9 with graded rewards" in str(dapo.bias)


def test_a_method_without_a_claim_has_no_verdict():
    grpo = find_evidence("grpo")
    assert grpo.claim is None
    assert grpo.verdict == "not tested"
    assert grpo.smoke.learns == "yes"


def test_verdicts_that_give_points_are_those_of_the_claims():
    assert evidence.HOLDS == (Verdict.HOLDS, Verdict.HOLDS_ONCE)
    assert evidence.DOES_NOT_HOLD == (Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD_ONCE)
