"""evidence.json equals the data in docs/, and its sentences are theirs."""

import json

from grupo.claims.results import Results
from grupo.suggest import evidence
from grupo.suggest.collect_evidence import collect_evidence
from grupo.suggest.evidence import find_evidence
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"


def test_the_file_is_what_the_command_writes():
    stored = json.loads((ROOT / "grupo" / "suggest" / evidence.FILE).read_text())
    assert stored == collect_evidence(DOCS), "run `make docs`"


def test_a_claim_without_runs_holds_nothing(tmp_path):
    for name in ("smoke_training.md", "bias.md"):
        (tmp_path / name).write_text((DOCS / name).read_text())
    assert Results.read(tmp_path / "claims.jsonl").metrics == {}
    records = collect_evidence(tmp_path)
    assert {r["claim"]["verdict"] for r in records.values() if "claim" in r} == {"needs more runs"}


def test_evidence_about_dapo_is_that_of_the_pages():
    dapo = find_evidence("dapo")
    assert dapo.verdict == "holds"
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
