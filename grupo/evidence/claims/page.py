"""The page of the claims, generated from the table and the results of runs."""

from collections import Counter
from collections.abc import Mapping

from grupo.compare.table_formats import markdown
from grupo.evidence.claims.claim import Claim, Setting
from grupo.evidence.claims.comparisons import (
    BASELINE,
    DESIGN,
    ArmComparison,
    ArmComparisonResult,
    Verdict,
    comparison_of,
)
from grupo.evidence.claims.metrics import METRICS
from grupo.evidence.claims.oracle_section import oracle_section
from grupo.evidence.claims.page_format import difference_text, method_link, number_text
from grupo.evidence.claims.repetition_section import repetition_cell, repetition_section
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.claims.verdicts import (
    ClaimResult,
    SettingChecks,
    claim_results,
    setting_checks,
)

INTRODUCTION = """\
# The central claims of {count} methods, tested in small environments

Each row tests one claim of a paper by one comparison that was fixed beforehand: two arms, one
metric and the predicted direction. Environments and budgets were chosen with an oracle, an
untrained policy and GRPO only; no arm was tuned, and each row was written before the first run of
its arms. The arguments of a method are its defaults, except for the group size, which both arms
share, lengths, which are scaled to the environment's, the update plan, which is the environment's,
and the KL penalty, which is 0 unless the method cannot do without.

A verdict is about an environment of this size and nothing else: a softmax policy with a table of
logits, a few dozen tasks, seconds of training. The mechanism of the library is the paper's; scale,
model and data are not. A claim that does not hold here may hold there, and the reverse.

*Holds* and *does not hold*: the sign of the difference is the predicted one, or the opposite, at
an error rate of {alpha:.0%}, and a [repetition](#repetition-of-the-decided-claims) with other seeds
confirms it; *not told apart*: neither. The first test is an exact sign-flip test of
paired seeds with {looks} pairs; it stops early, and its interval remains valid. The
rate holds for each row: if no arm differed from another, about {expected:.0f} of {count} rows would
be decided by chance at first. Both arms get the same number of generated rollouts, or of steps
where the row states it. `effect` is the mean difference in standard deviations of the differences
(Hedges' g), in the predicted direction, with the margin where there is one.

Written by `python -m grupo.evidence.claims docs/claims.md` from `docs/claims.jsonl`, which has the
metrics of {runs} runs; runs whose code has changed are made again. `--share 1/2` makes half of the
runs, and parts add up. Where names alone had changed, the runs were carried over after 50 of them,
drawn at random, had been made before and after the change with the same results to the last bit.
"""

CHECKS = """\
## Checks of the environments

The oracle knows which tokens an optimal policy takes: it has to win against GRPO, or the
environment cannot show a difference. The control is GRPO against itself, on the same tasks with
other random numbers: the two must not be told apart (error rate {alpha:.0%} for all environments
together). Where one of them fails, the claims of the environment have no verdict.
"""

CONTRADICTED = (Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD_ONCE)
HEADER = (
    *("method", "claim", "comparison", "arm", "baseline", "difference", "effect", "pairs"),
    *("first verdict", "repetition", "verdict"),
)


def claims_page(results: Results) -> str:
    """The page as Markdown."""
    checks = setting_checks(ALL_CLAIMS, results)
    outcomes = claim_results(ALL_CLAIMS, checks, results)
    parts = [
        _introduction(results),
        _summary(outcomes),
        repetition_section(ALL_CLAIMS, outcomes),
        _contradicted(outcomes),
        oracle_section(ALL_CLAIMS, outcomes),
        CHECKS.format(alpha=DESIGN.alpha),
        _check_table(checks),
        *(_setting_section(setting, outcomes) for setting in SETTINGS.values()),
        _metric_section(),
    ]
    return "\n".join(parts)


def _introduction(results: Results) -> str:
    return INTRODUCTION.format(
        count=len(ALL_CLAIMS),
        alpha=DESIGN.alpha,
        looks=", ".join(map(str, DESIGN.looks[:-1])) + f" or {DESIGN.looks[-1]}",
        expected=DESIGN.alpha * len(ALL_CLAIMS),
        runs=len(results.metrics),
    )


def _summary(outcomes: Mapping[str, ClaimResult]) -> str:
    counts = Counter(result.verdict for result in outcomes.values())
    lines = ["## Verdicts", ""]
    for verdict in Verdict:
        keys = [key for key, result in outcomes.items() if result.verdict is verdict]
        links = ", ".join(method_link(key) for key in keys)
        lines.append(f"* **{verdict}** ({counts[verdict]}): {links or 'none'}")
    return "\n".join([*lines, ""])


def _contradicted(outcomes: Mapping[str, ClaimResult]) -> str:
    """The claims that do not hold, each with what was measured."""
    lines = [
        _measured(claim, outcomes[claim.key])
        for claim in ALL_CLAIMS
        if outcomes[claim.key].verdict in CONTRADICTED
    ]
    title = "## What does not hold in these environments"
    return "\n".join([title, "", *(lines or ["None."]), ""])


def _measured(claim: Claim, result: ClaimResult) -> str:
    outcome = result.outcome
    repetition = f"; repeated {repetition_cell(result)}" if result.is_repeated else "; decided once"
    return (
        f"* {method_link(claim.key)}: {claim.sentence} Measured: `{claim.metric}`"
        f" {number_text(outcome.arm_mean)} against {number_text(outcome.baseline_mean)}, difference"
        f" {difference_text(outcome.difference)}{repetition}."
    )


def _check_table(checks: Mapping[str, SettingChecks]) -> str:
    header = ["environment", "metric", "oracle", "GRPO", "oracle wins", "GRPO twice", "passes"]
    rows = [
        [
            f"[{name}](#{name})",
            f"`{SETTINGS[name].metric}`",
            number_text(check.oracle.arm_mean),
            number_text(check.oracle.baseline_mean),
            difference_text(check.oracle.difference),
            difference_text(check.control.difference),
            "yes" if check.passed else "no",
        ]
        for name, check in checks.items()
    ]
    return markdown([header, *rows])


def _setting_section(setting: Setting, outcomes: Mapping[str, ClaimResult]) -> str:
    claims = [claim for claim in ALL_CLAIMS if claim.setting == setting.name]
    rows = [_claim_cells(claim, outcomes[claim.key]) for claim in claims]
    text = (
        f"{setting.description} {setting.steps} steps of {setting.rollouts_per_step} rollouts,"
        f" learning rate {setting.learning_rate:g}."
    )
    return "\n".join([f"## {setting.name}", "", text, "", markdown([[*HEADER], *rows])])


def _claim_cells(claim: Claim, result: ClaimResult) -> list[str]:
    return [
        method_link(claim.key),
        claim.sentence,
        _describe(comparison_of(claim)),
        *_outcome_cells(result.outcome),
        result.first,
        repetition_cell(result),
        f"**{result.verdict}**",
    ]


def _describe(comparison: ArmComparison) -> str:
    margin = f", equal within {comparison.margin:g}" if comparison.margin else ""
    return (
        f"`{comparison.arm.label}` against `{_short(comparison.baseline.label)}`:"
        f" `{comparison.metric}` {comparison.direction}{margin}"
    )


def _outcome_cells(outcome: ArmComparisonResult) -> list[str]:
    return [
        number_text(outcome.arm_mean),
        number_text(outcome.baseline_mean),
        difference_text(outcome.difference),
        number_text(outcome.effect_size, "+.1f"),
        str(outcome.pairs),
    ]


def _metric_section() -> str:
    rows = [[f"`{name}`", meaning] for name, meaning in METRICS.items()]
    text = "Measured with the trained policy on all tasks, 32 rollouts of each, without noise."
    return "\n".join(["## Metrics", "", text, "", markdown([["metric", "meaning"], *rows])])


def _short(label: str) -> str:
    return "GRPO" if label == BASELINE else label
