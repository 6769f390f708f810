"""`grupo ranks`: where every rank is, in a run that goes on, was stopped, or has finished."""

import json
import threading
import time

import pytest

from grupo.cli import ranks as ranks_command
from grupo.distributed.rank_report import RANK_REPORT_FILE, RankPlace, read_report, write_report
from tests.helpers.command_line import run_command
from tests.helpers.fake_vllm import FakeServer, completion


@pytest.fixture
def grupo(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return run_command(capsys)


@pytest.mark.slow
def test_a_run_that_goes_on_shows_each_rank(rank_processes, tmp_path, grupo):
    fake = FakeServer()
    released = threading.Event()

    def complete_when_released(handler, number, body):
        if number > 40:
            released.wait(30)
        handler.respond(200, completion(body, ""))

    fake.handle_completion = complete_when_released
    run = tmp_path / "run"
    options = {"recipe": "grpo", "urls": [fake.url]}
    training = threading.Thread(target=rank_processes, args=("train", run, 2), kwargs=options)
    training.start()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        places = read_report(run / RANK_REPORT_FILE) if run.is_dir() else []
        steps = [place.step for place in places]
        if len(fake.completion_bodies) > 40 and len(steps) == 2 and min(steps) > 0:
            break
        time.sleep(0.1)
    code, out, err = grupo("ranks", str(run))
    released.set()
    training.join()
    fake.stop()
    assert (code, err) == (0, "")
    summary, headings, *rows = out.splitlines()
    assert summary.endswith("2 ranks are running.")
    assert headings.split()[:5] == ["rank", "host", "process", "step", "phase"]
    assert [row.split()[0] for row in rows] == ["0", "1"]
    assert all(int(row.split()[3]) >= 1 for row in rows)


def test_a_finished_run_shows_where_its_ranks_ended(rank_processes, grupo):
    run = rank_processes.root / "kl 2"
    written = rank_processes.trained("kl", 2)
    code, out, _ = grupo("ranks", str(run))
    assert code == 0
    assert out.startswith(f"{run}: finished.\n")
    code, out, _ = grupo("ranks", str(run), "--json")
    data = json.loads(out)
    assert data["state"] == "finished"
    assert [place["rank"] for place in data["ranks"]] == [0, 1]
    assert all(0 <= place["step"] <= len(written.metrics) for place in data["ranks"])
    assert len({place["process"] for place in data["ranks"]}) == 2


@pytest.mark.slow
def test_a_run_whose_rank_was_killed_is_stopped(rank_processes, tmp_path, grupo, monkeypatch):
    run = tmp_path / "run"
    options = {"recipe": "kl", "at": "step/accumulated:3", "signalled": 1, "patience": 3}
    rank_processes("train", run, 2, **options)
    monkeypatch.setattr(ranks_command, "SILENCE", 0.0)
    _, out, _ = grupo("ranks", str(run))
    assert "stopped before its end: no rank showed a sign of life for" in out
    assert "`grupo resume` continues it." in out
    rank_processes("resume", run, 1)  # by one process, which removes the report
    _, out, _ = grupo("ranks", str(run))
    assert out == f"{run}: finished.\n"


def test_a_silent_rank_is_named(tmp_path, grupo):
    (tmp_path / "recipe.json").touch()
    now = time.time()
    places = [
        RankPlace(0, "a", 11, 17, "rollouts generated", now - 5, now),
        RankPlace(1, "b", 12, 17, "step ended", now - 70, now - 60),
    ]
    write_report(tmp_path / RANK_REPORT_FILE, places)
    assert read_report(tmp_path / RANK_REPORT_FILE) == places
    _, out, _ = grupo("ranks", str(tmp_path))
    lines = out.splitlines()
    assert lines[0].endswith("2 ranks are running; no sign of life from rank 1.")
    assert " ".join(lines[3].split()) == "1 b 12 17 step ended 70 s ago 60 s ago"


def test_a_run_of_one_process_has_no_ranks(tmp_path, grupo):
    (tmp_path / "recipe.json").touch()
    code, out, _ = grupo("ranks", str(tmp_path))
    assert code == 0
    assert "only several ranks report where they are" in out


def test_a_damaged_report_is_refused(tmp_path, grupo):
    (tmp_path / "recipe.json").touch()
    (tmp_path / RANK_REPORT_FILE).write_text('[{"rank": 0}]')
    code, _, err = grupo("ranks", str(tmp_path))
    assert code == 2
    assert f"{tmp_path / RANK_REPORT_FILE}: it is damaged." in err
