"""Names and failures in a run's folder from elsewhere: no control character, no forged line."""

import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from grupo.report.doctor import examine, format_findings
from grupo.report.escape import literal_line
from grupo.report.html.run_view import RunView
from grupo.report.read_run import crash_reason
from grupo.report.rollouts import format_rollouts, select_rollouts
from grupo.report.tables import eval_table
from grupo.report.terminal_dashboard import dashboard
from tests.helpers.written_runs import metrics, rollout, write_lines, write_run

NAME = "a\nFORGED [bold]\x1b[31m\u202e\0\u2028\r\x9b"
SHOWN = r"a\nFORGED [bold]\x1b[31m\u202e\x00\u2028\r\x9b"


def printed(shown: Any) -> str:
    """The lines that a console prints, without colours."""
    file = io.StringIO()
    Console(file=file, width=2000).print(shown)
    return file.getvalue()


def check(text: str) -> None:
    """No character acts on a terminal, and no line begins with a name's second one."""
    acting = {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}}
    assert acting <= {"\n"}
    assert not [line for line in text.splitlines() if line.strip(" │").startswith("FORGED")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose names of tasks, rewards and metrics are hostile; its process crashed."""
    run = write_run(tmp_path / "run\nFORGED", ended=False)
    steps = (1, 2, 3)
    fields: dict[str, Any] = {"prompt": "What?"}
    terms = [{NAME: r} for r in (0.0, 0.0)]
    lines = [rollout(s, NAME, "four", 0.0, reward_terms=t, **fields) for s in steps for t in terms]
    failed = rollout(3, NAME, "four", "NaN", reward_terms={NAME: "NaN"}, error=NAME, **fields)
    write_lines(run / "rollouts.jsonl", [*lines, failed])
    write_lines(run / "metrics.jsonl", [metrics(s, **{f"x/{NAME}": "NaN"}) for s in steps])
    (run / "crash.json").write_text(json.dumps({"code": 1, "last_line": NAME}))
    return run


def test_a_line_of_the_terminal_stays_one_line():
    assert literal_line(NAME).plain == SHOWN


def test_the_doctor_forges_no_line(run):
    text = printed(format_findings(examine(run)))
    check(text)
    assert SHOWN in text


def test_rollouts_forge_no_line(run):
    records = [{**record, "error": ""} for record in select_rollouts(run)]  # an error has lines
    text = printed(format_rollouts(records))
    check(text)
    assert rf"({SHOWN} 0)" in text


def test_the_dashboard_forges_no_line(run):
    view = RunView(run)
    view.refresh()
    text = printed(dashboard([view]))
    check(text)
    assert f"the training process crashed: {SHOWN}" in text


def test_the_reason_of_a_crash_is_one_short_line(run):
    assert crash_reason(run) == SHOWN
    (run / "crash.json").write_text(json.dumps({"code": -9, "last_line": 10**6 * "x"}))
    assert len(crash_reason(run)) < 600


def test_a_criterion_is_no_markup():
    scores = {"before": {"intervals": {}, "greedy": 0.5, "sampled": 0.5}}
    text = printed(eval_table(scores, NAME))
    check(text)
    assert "".join(f"solved: {SHOWN}".split()) in "".join(text.split())
