"""The doctor: findings from run folders, and how they are printed."""

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from grupo.report.checks.finding import Location
from grupo.report.checks.load_run import load_run
from grupo.report.checks.optimization import ZERO_LOSS
from grupo.report.checks.progress import TRUNCATED_COMPLETIONS
from grupo.report.doctor import CHECKS, examine, format_findings
from grupo.storage.lock import Lock
from grupo.util.errors import ConfigError


def rollout(step: int, text: str, reward, error: str = "") -> dict:
    terms = {} if error else {"right": reward}
    return {
        "step": step,
        "task": "t",
        "prompt": "p",
        "text": text,
        "reward": reward,
        "reward_terms": terms,
        "advantage": 0.0,
        "length": 3,
        "truncated": False,
        "error": error,
    }


def test_torn_journals_are_read_to_their_last_complete_line(write_run):
    lines = [
        {"step": i, "reward/mean": 0.0, "reward/std": 0.0, "loss": "NaN"} for i in (1, 2, 3, 4)
    ]
    folder = write_run([rollout(i, "x", 0.0) for i in range(1, 5)], lines, end='{"step": 5, "rewa')
    findings = examine(folder)
    assert [f.name for f in findings] == ["reward always zero", "torn journal"]
    assert "all 4 steps" in findings[0].details
    assert "The last line of metrics.jsonl and rollouts.jsonl is incomplete." in findings[1].details


def test_folder_without_steps_has_too_few_steps(tmp_path: Path):
    (tmp_path / "recipe.json").write_text("{}")
    assert [f.name for f in examine(tmp_path)] == ["too few steps"]


def test_folder_without_a_run_is_rejected(tmp_path: Path):
    with pytest.raises(ConfigError, match="holds no run"):
        examine(tmp_path)


def test_error_messages_are_quoted_and_escaped(write_run):
    message = "task t, rollout 1: reward 'right' \x1b[31mhung"
    rollouts = [rollout(1, "a", 1.0), rollout(1, "a", "NaN", message)]
    finding = examine(write_run(rollouts, [{"step": 1}]))[0]
    assert (finding.name, finding.severity) == ("failed rewards", "error")
    assert finding.details.endswith("Most frequent (1 x): reward 'right' \x1b[31mhung")
    assert r"\x1b[31mhung" in rendered([finding])


def rendered(findings) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(format_findings(findings))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b" not in console.file.getvalue()
    return console.file.getvalue()


def test_missing_fields_are_reported_and_other_checks_run(write_run):
    old = {n: x for n, x in rollout(0, "a", 1.0).items() if n not in ("error", "reward_terms")}
    lines = [{"step": i, "reward/mean": 0.0, "reward/std": 0.0} for i in (1, 2, 3, 4)]
    findings = {f.name: f for f in examine(write_run([old], lines))}
    assert list(findings) == ["reward always zero", "version mismatch"]
    assert "Lines lack `reward_terms`, `error`:" in findings["version mismatch"].details


def test_nan_metrics_are_named_unless_they_may_be_nan(write_run):
    lines = [{"step": i, "reward/mean": "NaN", "policy/entropy": 1.0} for i in range(1, 6)]
    lines[2]["policy/entropy"] = lines[4]["policy/entropy"] = "NaN"
    (finding,) = examine(write_run([], lines))
    assert (finding.name, finding.details) == ("NaN metrics", "policy/entropy at steps 3, 5.")
    assert [location.step for location in finding.locations] == [3, 5]


def test_metric_that_is_not_a_number_is_rejected_with_its_line(write_run):
    with pytest.raises(
        ConfigError, match=r"metrics\.jsonl, line 2, holds a value that is not a number"
    ):
        examine(write_run([], [{"step": 1}, {"step": 2, "loss": [1]}]))


def test_unreadable_recipe_is_ignored(write_run):
    folder = write_run([], [{"step": i} for i in (1, 2, 3)])
    (folder / "recipe.json").write_text("{")
    assert examine(folder) == []


def test_lock_of_a_training_process_is_detected(real_run):
    assert not load_run(real_run).files.is_locked
    with Lock(real_run / "lock"):
        assert load_run(real_run).files.is_locked
    assert not load_run(real_run).files.is_locked


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_unreadable_run_names_its_owner(real_run):
    real_run.chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match=r"is not readable: .*exclude"):
            examine(real_run)
    finally:
        os.seteuid(0)


def test_locations_of_a_finding_are_printed():
    output = rendered(
        [TRUNCATED_COMPLETIONS("35%", locations=[Location(3, "abcdef0123", 2), Location(4)])]
    )
    lines = [line.rstrip() for line in output.splitlines()]
    assert lines[2:4] == ["  at     step 3, task abcdef01, rollout 2", "         step 4"]


def test_healthy_run_prints_one_line():
    assert rendered([]) == f"Healthy: none of {len(CHECKS)} checks found a problem.\n"


def test_notes_follow_the_healthy_line():
    lines = rendered([ZERO_LOSS("It is 0.")]).splitlines()
    assert lines[0].startswith("Healthy")
    assert lines[1] == "note: zero loss"
    assert "Normal on policy" in " ".join(lines)


def test_findings_show_causes_and_suggestions_in_100_columns():
    output = rendered([TRUNCATED_COMPLETIONS("35% of the rollouts " * 20)])
    assert "Healthy" not in output
    for line in (
        "warning: truncated answers",
        "  causes `policy.max_new_tokens` is too small",
        "  try    Use a larger",
    ):
        assert line in output
    assert max(map(len, output.splitlines())) <= 100


def test_real_run_is_examined(real_run):
    lines = (real_run / "metrics.jsonl").read_text().splitlines()
    worst = max(json.loads(line)["completions/truncated_frac"] for line in lines)
    names = {finding.name for finding in examine(real_run)}
    assert ("truncated answers" in names) == (worst > 0.2)
    assert "sampler mismatch" not in names


def test_rollouts_without_text_are_not_identical_answers(write_run):
    lines = [{"step": i, "reward/mean": 0.5} for i in (1, 2, 3)]
    images = [rollout(i // 2, "", float(i % 2)) for i in range(6)]
    assert [f.name for f in examine(write_run(images, lines))] == []
    empty = [line | {"length": 1} for line in images]
    assert [f.name for f in examine(write_run(empty, lines))] == ["identical answers"]


def test_commands_of_the_suggestions_have_the_folder_of_the_run(write_run, monkeypatch):
    lines = [{"step": i, "reward/mean": 0.0, "reward/std": 0.0} for i in (1, 2, 3, 4)]
    folder = write_run([rollout(i, "x", 0.0) for i in (1, 2, 3, 4)], lines)
    (finding,) = examine(folder)
    assert f"`grupo rollouts {folder}`" in finding.suggestions[0]
    monkeypatch.chdir(folder.parent)
    (finding,) = examine(folder)
    assert f"`grupo rollouts {folder.name}`" in finding.suggestions[0]


def test_zero_loss_states_what_changed_and_no_learning(write_run):
    values = {"loss": 0.0, "grad_norm": 0.5, "update/changed_frac": 0.75, "reward/mean": 0.5}
    lines = [{"step": i, "reward/std": 0.25, **values} for i in (1, 2, 3, 4)]
    details = {f.name: f.details for f in examine(write_run([], lines))}["zero loss"]
    assert details.endswith("norm is 0.5, and 75% of the sampled weights changed.")
    assert "learn" not in details
