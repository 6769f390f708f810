"""Collects the evidence about all methods from the pages and data in docs/."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grupo.catalogue.search import find_entry
from grupo.evidence.atlas.comparison import Runs
from grupo.evidence.atlas.runs import read_runs
from grupo.evidence.atlas.table import COMPARISONS
from grupo.evidence.claims.claim import Claim
from grupo.evidence.claims.comparisons import Verdict
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.claims.verdicts import claim_results, setting_checks
from grupo.evidence.suggest.evidence import (
    AtlasEvidence,
    BiasEvidence,
    ClaimEvidence,
    SmokeEvidence,
)

METHOD_ROW = re.compile(r"^\| \[[^\]]*\]\(methods/(?P<key>\w+)\.md\) \| (?P<cells>.*) \|$", re.M)
SIGNIFICANT_DIGITS = 4


def collect_evidence(docs: Path, claims: Sequence[Claim] = ALL_CLAIMS) -> dict[str, dict[str, Any]]:
    """The records of all methods with any evidence, by key.

    Args:
        docs: The folder with atlas.jsonl, claims.jsonl, smoke_training.md and bias.md.
        claims: The claims to include; all by default.
    """
    records: dict[str, dict[str, Any]] = {}
    for kind, evidence in (
        ("claim", _claims(claims, Results.read(docs / "claims.jsonl"))),
        ("smoke", _smoke_rows(docs / "smoke_training.md")),
        ("bias", _bias_rows(docs / "bias.md")),
    ):
        for key, row in evidence:
            records.setdefault(find_entry(key).key, {})[kind] = asdict(row)
    for key, row in _atlas_rows(read_runs(docs / "atlas.jsonl")):
        records.setdefault(key, {}).setdefault("atlas", []).append(asdict(row))
    return dict(sorted(records.items()))


def _atlas_rows(runs: Runs) -> Iterator[tuple[str, AtlasEvidence]]:
    """The comparisons of the atlas that ended, by the method that they are about."""
    for one in COMPARISONS:
        decision, verdict = one.decision(runs), one.verdict(runs)
        if one.method and verdict is not Verdict.PENDING:
            difference = decision.mean_difference
            yield (
                one.method,
                AtlasEvidence(
                    family=one.family,
                    arm=one.arm,
                    baseline=one.baseline,
                    is_whole=one.arm.partition(",")[0] == one.method,
                    metric=one.metric,
                    unit=one.unit,
                    verdict=str(verdict),
                    difference=_rounded(difference.value),
                    low=_rounded(difference.low),
                    high=_rounded(difference.high),
                    pairs=decision.pairs,
                ),
            )


def _claims(claims: Sequence[Claim], results: Results) -> Iterator[tuple[str, ClaimEvidence]]:
    outcomes = claim_results(claims, setting_checks(claims, results), results)
    for claim in claims:
        outcome = outcomes[claim.key].outcome
        difference = outcome.difference
        yield (
            claim.key,
            ClaimEvidence(
                sentence=claim.sentence,
                setting=claim.setting,
                metric=claim.metric,
                arm=claim.arm.label,
                baseline=claim.baseline.label,
                verdict=str(outcomes[claim.key].verdict),
                difference=_rounded(difference.value),
                low=_rounded(difference.low),
                high=_rounded(difference.high),
                effect=_rounded(outcome.effect_size),
                pairs=outcome.pairs,
            ),
        )


def _smoke_rows(page: Path) -> Iterator[tuple[str, SmokeEvidence]]:
    for key, (accuracy, difference, verdict, _, learns) in _rows(page, 5):
        yield key, SmokeEvidence(accuracy, difference, verdict, learns)


def _bias_rows(page: Path) -> Iterator[tuple[str, BiasEvidence]]:
    for key, cells in _rows(page, 9):  # methods without a measurement are in a table of two columns
        _, _, tasks, _, variance, graded, lengths, *_ = cells
        yield key, BiasEvidence(tasks, graded, lengths, variance)


def _rows(page: Path, num_cells: int) -> Iterator[tuple[str, list[str]]]:
    """The methods in a page's tables: key and cells of each row with `num_cells` further cells."""
    for row in METHOD_ROW.finditer(page.read_text(encoding="utf-8")):
        cells = [cell.strip() for cell in row["cells"].split("|")]
        if len(cells) == num_cells:
            yield row["key"], cells


def _rounded(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
