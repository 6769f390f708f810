"""What is wrong with a run, why as a rule, and what to try."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.padding import Padding
from rich.table import Table

from grupo.report.checks import (
    gradient_direction,
    integrity,
    learning_signal,
    optimization,
    progress,
    rewards,
    sampler_mismatch,
)
from grupo.report.checks.finding import Check, Finding
from grupo.report.checks.load_run import gather
from grupo.report.checks.run_data import Evidence
from grupo.report.escape import literal

CHECKS: tuple[Check, ...] = (
    integrity.half_written,
    integrity.other_version,
    integrity.steps_lost,
    integrity.stands_still,
    integrity.stopped,
    learning_signal.too_short,
    progress.failed_rewards,
    rewards.nan_rewards,
    integrity.not_a_number,
    optimization.nonfinite_gradient,
    sampler_mismatch.wrong_mask,
    gradient_direction.wrong_way,
    gradient_direction.against_reward,
    gradient_direction.uphill,
    learning_signal.zero_reward,
    learning_signal.constant_reward,
    learning_signal.no_signal,
    learning_signal.nothing_learned,
    optimization.no_gradient,
    optimization.unmoved,
    sampler_mismatch.mismatch,
    sampler_mismatch.stale_weights,
    optimization.too_fast,
    progress.held_out_fell,
    progress.fell_back,
    progress.entropy_collapse,
    learning_signal.identical_answers,
    progress.truncated,
    progress.longer_for_nothing,
    rewards.follows_length,
    rewards.told_answers,
    optimization.growing_kl,
    optimization.exploding_gradient,
    learning_signal.unchanging_parts,
    rewards.slow_judges,
    rewards.long_tail,
    integrity.less_memory,
    optimization.zero_loss,
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
