import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from grupo.core.errors import ConfigError
from grupo.report.checks.finding import Location
from grupo.report.checks.load_run import load_run
from grupo.report.checks.optimization import ZERO_LOSS
from grupo.report.checks.progress import TRUNCATED_COMPLETIONS
from grupo.report.doctor import CHECKS, examine, format_findings
from grupo.storage.lock import Lock


def rollout(step: int, text: str, reward, failed: str = "") -> dict:
    parts = {} if failed else {"right": reward}
    return {
        "step": step,
        "task": "t",
        "prompt": "p",
        "text": text,
        "reward": reward,
        "parts": parts,
        "advantage": 0.0,
        "length": 3,
        "truncated": False,
        "failed": failed,
    }


def test_a_folder_half_written_is_read_up_to_the_tear(written):
    lines = [{"step": i, "reward/mean": 0.0, "reward/std": 0.0, "loss": "NaN"} for i in range(4)]
    folder = written([rollout(i, "x", 0.0) for i in range(4)], lines, end='{"step": 4, "rewa')
    found = examine(folder)
    assert [f.name for f in found] == ["reward always zero", "half written"]
    assert "all 4 steps" in found[0].details
    assert "The last line of metrics.jsonl and rollouts.jsonl is not whole." in found[1].details


def test_a_folder_without_a_step_is_too_short(tmp_path: Path):
    (tmp_path / "recipe.json").write_text("{}")
    assert [f.name for f in examine(tmp_path)] == ["too short"]


def test_a_folder_without_a_run_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="holds no run"):
        examine(tmp_path)


def test_failures_and_texts_are_read_from_the_journal(written):
    why = "task t, rollout 1: reward 'right' \x1b[31mhung"
    groups = [rollout(0, "a", 1.0), rollout(0, "a", "NaN", why)]
    finding = examine(written(groups, [{"step": 0}]))[0]
    assert (finding.name, finding.severity) == ("failed rewards", "error")
    assert finding.details.endswith("Most often (1 x): reward 'right' \x1b[31mhung")
    assert r"\x1b[31mhung" in shown([finding])


def shown(findings) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(format_findings(findings))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b" not in console.file.getvalue()
    return console.file.getvalue()


def test_a_run_of_another_version_says_what_it_lacks_and_the_rest_is_looked_at(written):
    old = {n: x for n, x in rollout(0, "a", 1.0).items() if n not in ("failed", "parts")}
    lines = [{"step": i, "reward/mean": 0.0, "reward/std": 0.0} for i in range(4)]
    found = {f.name: f for f in examine(written([old], lines))}
    assert list(found) == ["reward always zero", "another version"]
    assert "Lines lack `parts`, `failed`:" in found["another version"].details


def test_a_metric_that_is_nan_is_named_and_one_that_may_be_is_not(written):
    lines = [{"step": i, "reward/mean": "NaN", "entropy": 1.0} for i in range(5)]
    lines[2]["entropy"] = lines[4]["entropy"] = "NaN"
    (finding,) = examine(written([], lines))
    assert (finding.name, finding.details) == ("not a number", "entropy at steps 2, 4.")
    assert [place.step for place in finding.locations] == [2, 4]


def test_a_metric_that_is_no_number_at_all_is_refused_by_its_line(written):
    with pytest.raises(ConfigError, match=r"metrics\.jsonl, line 2, holds what is no number"):
        examine(written([], [{"step": 0}, {"step": 1, "loss": [1]}]))


def test_a_recipe_that_cannot_be_read_is_done_without(written):
    folder = written([], [{"step": i} for i in range(3)])
    (folder / "recipe.json").write_text("{")
    assert examine(folder) == []


def test_whoever_trains_there_is_seen_without_disturbing_them(real_run):
    assert not load_run(real_run).files.is_locked
    with Lock(real_run / "lock"):
        assert load_run(real_run).files.is_locked
    assert not load_run(real_run).files.is_locked


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_run_that_may_not_be_read_says_whose_it_is(real_run):
    real_run.chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match=r"may not be read: .*keep"):
            examine(real_run)
    finally:
        os.seteuid(0)


def test_the_place_of_a_finding_is_shown():
    said = shown([TRUNCATED_COMPLETIONS("35%", at=[Location(3, "abcdef0123", 2), Location(4)])])
    lines = [line.rstrip() for line in said.splitlines()]
    assert lines[2:4] == ["  at  step 3, task abcdef01, rollout 2", "      step 4"]


def test_a_healthy_run_gets_one_line():
    assert shown([]) == f"Healthy: none of {len(CHECKS)} checks found anything wrong.\n"


def test_notes_come_after_the_line_of_health():
    said = shown([ZERO_LOSS("It is 0.")]).splitlines()
    assert said[0].startswith("Healthy")
    assert said[1] == "note: loss is zero"
    assert "Normal on policy" in " ".join(said)


def test_findings_say_what_why_and_what_to_try_in_100_columns():
    said = shown([TRUNCATED_COMPLETIONS("35% of the answers " * 20)])
    assert "Healthy" not in said
    for line in (
        "warning: answers cut off",
        "  why `policy.max_new_tokens` is too small",
        "  try A larger",
    ):
        assert line in said
    assert max(map(len, said.splitlines())) <= 100


def test_a_real_run_is_examined(real_run):
    lines = (real_run / "metrics.jsonl").read_text().splitlines()
    worst = max(json.loads(line)["completions/truncated_frac"] for line in lines)
    found = {finding.name for finding in examine(real_run)}
    assert ("answers cut off" in found) == (worst > 0.2)
    assert "sampler and trainer disagree" not in found


def test_what_has_no_text_is_not_taken_for_the_same_answer(written):
    lines = [{"step": i, "reward/mean": 0.5} for i in range(3)]
    pictures = [rollout(i // 2, "", float(i % 2)) for i in range(6)]
    assert [f.name for f in examine(written(pictures, lines))] == []
    silent = [line | {"length": 1} for line in pictures]
    assert [f.name for f in examine(written(silent, lines))] == ["identical answers"]
