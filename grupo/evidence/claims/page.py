"""The page of the claims, generated from the table and the results of runs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from grupo.catalogue.search import find_entry
from grupo.compare.table_formats import markdown
from grupo.evidence.claims.claim import Claim, Setting
from grupo.evidence.claims.comparisons import (
    BASELINE,
    DESIGN,
    ArmComparison,
    ArmComparisonResult,
    Verdict,
    compare,
    comparison_of,
    control_comparison,
    oracle_comparison,
)
from grupo.evidence.claims.metrics import METRICS
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.settings import SETTINGS
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.util.statistics import Interval

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
an error rate of {alpha:.0%}; *not told apart*: neither. The test is an exact sign-flip test of
paired seeds with {looks} pairs; it stops early, and its interval remains valid. The
rate holds for each row: if no arm differed from another, about {expected:.0f} of {count} rows would
be decided by chance. Both arms get the same number of generated rollouts, or of steps where the row
states it. `effect` is the mean difference in standard deviations of the differences (Hedges' g), in
the predicted direction, with the margin where there is one.

Written by `python -m grupo.evidence.claims docs/claims.md` from `docs/claims.jsonl`, which has the
metrics of {runs} runs; runs whose code has changed are repeated. `--share 1/2` makes half of the
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

RESULT_COLUMNS = ["arm", "baseline", "difference", "effect", "pairs", "verdict"]


def claims_page(results: Results) -> str:
    """The page as Markdown."""
    outcomes = {claim.key: compare(comparison_of(claim), results) for claim in ALL_CLAIMS}
    checks = {name: setting_checks(setting, results) for name, setting in SETTINGS.items()}
    verdicts = {
        claim.key: verdict_in(checks[claim.setting], outcomes[claim.key].verdict)
        for claim in ALL_CLAIMS
    }
    parts = [
        _introduction(results),
        _summary(verdicts),
        _contradicted(outcomes, verdicts),
        CHECKS.format(alpha=DESIGN.alpha),
        _check_table(checks),
        *(_setting_section(setting, outcomes, verdicts) for setting in SETTINGS.values()),
        _metric_section(),
    ]
    return "\n".join(parts)


def setting_checks(
    setting: Setting, results: Results
) -> tuple[ArmComparisonResult, ArmComparisonResult]:
    """The results of the oracle and of the negative control."""
    comparisons = (oracle_comparison(setting), control_comparison(setting))
    oracle, control = (compare(comparison, results) for comparison in comparisons)
    return oracle, control


def passes(oracle: ArmComparisonResult, control: ArmComparisonResult) -> bool:
    """True if the oracle wins and the control shows no difference."""
    return oracle.verdict is Verdict.HOLDS and control.verdict is Verdict.UNDECIDED


def verdict_in(
    checks: tuple[ArmComparisonResult, ArmComparisonResult], verdict: Verdict
) -> Verdict:
    """The verdict on a claim, which counts only if its environment passes the checks."""
    if passes(*checks):
        return verdict
    is_pending = any(check.verdict is Verdict.PENDING for check in checks)
    return Verdict.PENDING if is_pending else Verdict.INVALID


def _introduction(results: Results) -> str:
    return INTRODUCTION.format(
        count=len(ALL_CLAIMS),
        alpha=DESIGN.alpha,
        looks=", ".join(map(str, DESIGN.looks[:-1])) + f" or {DESIGN.looks[-1]}",
        expected=DESIGN.alpha * len(ALL_CLAIMS),
        runs=len(results.metrics),
    )


def _summary(verdicts: Mapping[str, Verdict]) -> str:
    counts = Counter(verdicts.values())
    lines = ["## Verdicts", ""]
    for verdict in Verdict:
        keys = [key for key, other in verdicts.items() if other is verdict]
        links = ", ".join(_link(key) for key in keys)
        lines.append(f"* **{verdict}** ({counts[verdict]}): {links or 'none'}")
    return "\n".join([*lines, ""])


def _contradicted(
    outcomes: Mapping[str, ArmComparisonResult], verdicts: Mapping[str, Verdict]
) -> str:
    """The claims that do not hold, each with what was measured."""
    lines = [
        f"* {_link(claim.key)}: {claim.sentence} Measured: `{claim.metric}`"
        f" {_number(outcome.arm_mean)} against {_number(outcome.baseline_mean)}, difference"
        f" {_difference(outcome.difference)}."
        for claim in ALL_CLAIMS
        if verdicts[claim.key] is Verdict.DOES_NOT_HOLD
        for outcome in [outcomes[claim.key]]
    ]
    return "\n".join(["## What does not hold in these environments", "", *lines, ""])


def _check_table(checks: Mapping[str, tuple[ArmComparisonResult, ArmComparisonResult]]) -> str:
    header = ["environment", "metric", "oracle", "GRPO", "oracle wins", "GRPO twice", "passes"]
    rows = [
        [
            f"[{name}](#{name})",
            f"`{SETTINGS[name].metric}`",
            _number(oracle.arm_mean),
            _number(oracle.baseline_mean),
            _difference(oracle.difference),
            _difference(control.difference),
            "yes" if passes(oracle, control) else "no",
        ]
        for name, (oracle, control) in checks.items()
    ]
    return markdown([header, *rows])


def _setting_section(
    setting: Setting,
    outcomes: Mapping[str, ArmComparisonResult],
    verdicts: Mapping[str, Verdict],
) -> str:
    claims = [claim for claim in ALL_CLAIMS if claim.setting == setting.name]
    header = ["method", "claim", "comparison", *RESULT_COLUMNS]
    rows = [_claim_cells(claim, outcomes[claim.key], verdicts[claim.key]) for claim in claims]
    text = (
        f"{setting.description} {setting.steps} steps of {setting.rollouts_per_step} rollouts,"
        f" learning rate {setting.learning_rate:g}."
    )
    return "\n".join([f"## {setting.name}", "", text, "", markdown([header, *rows])])


def _claim_cells(claim: Claim, outcome: ArmComparisonResult, verdict: Verdict) -> list[str]:
    comparison = comparison_of(claim)
    return [
        _link(claim.key),
        claim.sentence,
        _describe(comparison),
        *_result_cells(outcome),
        f"**{verdict}**",
    ]


def _describe(comparison: ArmComparison) -> str:
    margin = f", equal within {comparison.margin:g}" if comparison.margin else ""
    return (
        f"`{comparison.arm.label}` against `{_short(comparison.baseline.label)}`:"
        f" `{comparison.metric}` {comparison.direction}{margin}"
    )


def _result_cells(outcome: ArmComparisonResult) -> list[str]:
    return [
        _number(outcome.arm_mean),
        _number(outcome.baseline_mean),
        _difference(outcome.difference),
        _number(outcome.effect_size, "+.1f"),
        str(outcome.pairs),
    ]


def _metric_section() -> str:
    rows = [[f"`{name}`", meaning] for name, meaning in METRICS.items()]
    text = "Measured with the trained policy on all tasks, 32 rollouts of each, without noise."
    return "\n".join(["## Metrics", "", text, "", markdown([["metric", "meaning"], *rows])])


def _short(label: str) -> str:
    return "GRPO" if label == BASELINE else label


def _link(key: str) -> str:
    return f"[{find_entry(key).name}](methods/{key}.md)"


def _difference(interval: Interval) -> str:
    """The difference with its interval, such as "+0.10 [+0.04, +0.16]"."""
    bounds: Sequence[float] = (interval.low, interval.high)
    return f"{_number(interval.value, '+.3g')} [{', '.join(_number(x, '+.3g') for x in bounds)}]"


def _number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else "n/a"
