"""Opening run folders: display names, duplicates, permissions."""

import os
import tempfile
from pathlib import Path

import pytest

from grupo.report.html.payload import open_runs
from grupo.report.html.run_view import RunView
from grupo.util.errors import ConfigError
from tests.helpers.written_runs import write_run


def test_runs_with_equal_names_get_distinct_display_names(tmp_path):
    folders = [write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run")]
    assert [run.name for run in open_runs(folders)] == ["a/run", "b/run"]


def test_duplicate_folders_are_opened_once(tmp_path):
    write_run(tmp_path / "run")
    assert len(open_runs([tmp_path / "run", tmp_path / "." / "run"])) == 1


def test_folder_without_a_run_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run: it has no recipe\.json"):
        open_runs([tmp_path])
    with pytest.raises(ConfigError, match="is not a folder"):
        open_runs([tmp_path / "nowhere"])


@pytest.fixture
def other_user():
    """Run as another user than the owner of the files."""
    if os.geteuid():
        pytest.skip("only root can change the user")
    os.seteuid(65534)
    yield
    os.seteuid(0)


def make_accessible(folder):
    """Make the folder and its temporary parents accessible to every user."""
    for path in (folder, *folder.parents):
        if path.is_relative_to(tempfile.gettempdir()) and path != Path(tempfile.gettempdir()):
            path.chmod(0o755)


def test_unreadable_run_is_a_problem_next_to_readable_runs(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("users")
    readable, unreadable = write_run(folder / "readable"), write_run(folder / "unreadable")
    unreadable.chmod(0o700)
    make_accessible(folder)
    request.getfixturevalue("other_user")
    runs = open_runs([readable, unreadable])
    assert [run.problems for run in runs] == [[], ["the folder: Permission denied"]]
    with pytest.raises(ConfigError, match=r"'.*unreadable' is not readable: Permission denied"):
        open_runs([unreadable])


def test_unreadable_journal_is_a_problem(tmp_path_factory, request):
    folder = write_run(tmp_path_factory.mktemp("users") / "run")
    (folder / "rollouts.jsonl").chmod(0o600)
    make_accessible(folder)
    request.getfixturevalue("other_user")
    run = RunView(folder)
    run.refresh()
    assert "rollouts.jsonl: Permission denied" in run.problems
    assert len(run.metrics) == 3


def test_a_comparison_stands_for_all_its_runs(tmp_path):
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(ConfigError, match="comparison of which no run has begun"):
        open_runs([tmp_path])
    for seed in (10, 9):
        write_run(tmp_path / "runs" / "grpo" / f"seed-{seed}")
    assert [run.name for run in open_runs([tmp_path])] == ["seed-9", "seed-10"]
