"""What is wrong with a run, why as a rule, and what to try."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.padding import Padding
from rich.table import Table

from grupo.report.checks import course, direction, record, rewards, sampler, signal, training
from grupo.report.checks.evidence import Evidence
from grupo.report.checks.finding import Check, Finding
from grupo.report.checks.folder import gather
from grupo.report.literal import literal

CHECKS: tuple[Check, ...] = (
    record.half_written,
    record.other_version,
    record.steps_lost,
    record.stands_still,
    record.stopped,
    signal.too_short,
    course.failed_rewards,
    rewards.nan_rewards,
    record.not_a_number,
    training.nonfinite_gradient,
    sampler.wrong_mask,
    direction.wrong_way,
    direction.against_reward,
    direction.uphill,
    signal.zero_reward,
    signal.constant_reward,
    signal.no_signal,
    signal.nothing_learned,
    training.no_gradient,
    training.unmoved,
    sampler.mismatch,
    sampler.stale_weights,
    training.too_fast,
    course.held_out_fell,
    course.fell_back,
    course.entropy_collapse,
    signal.identical_answers,
    course.truncated,
    course.longer_for_nothing,
    rewards.follows_length,
    rewards.told_answers,
    training.growing_kl,
    training.exploding_gradient,
    signal.unchanging_parts,
    rewards.slow_judges,
    rewards.long_tail,
    record.less_memory,
    training.zero_loss,
)
_ORDER = ("error", "warning", "note")
_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def examine(run_folder: Path) -> list[Finding]:
    """Everything worth knowing about a run, ended or under way, the worst first."""
    return diagnose(gather(run_folder))


def diagnose(run: Evidence) -> list[Finding]:
    """What the checks say of the evidence, the worst first."""
    found = [finding for check in CHECKS for finding in check(run)]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def show(findings: Sequence[Finding]) -> Group:
    """Findings to read; one line for a run that has nothing wrong."""
    wrong = any(finding.severity != "note" for finding in findings)
    well = literal(f"Healthy: none of {len(CHECKS)} checks found anything wrong.", "green")
    return Group(*[well] * (not wrong), *map(_shown, findings))


def _shown(finding: Finding) -> Group:
    grid = Table.grid(padding=(0, 1))
    where = tuple(map(str, finding.places))
    for label, texts in (("at", where), ("why", finding.causes), ("try", finding.tries)):
        for number, line in enumerate(texts):
            grid.add_row(label if number == 0 else "", literal(line))
    head = literal(f"{finding.severity}: {finding.name}", _STYLE[finding.severity])
    return Group(head, Padding(Group(literal(finding.seen), grid), (0, 0, 1, 2)))
