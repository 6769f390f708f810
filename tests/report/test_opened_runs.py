"""Which folders hold runs, by what names, and who may read them."""

import os
import tempfile
from pathlib import Path

import pytest

from grupo.core.errors import ConfigError
from grupo.report.html.payload import open_runs
from grupo.report.html.run_view import RunView
from tests.helpers.written_runs import write


def test_two_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    folders = [write(tmp_path / "a" / "run"), write(tmp_path / "b" / "run")]
    assert [book.name for book in open_runs(folders)] == ["a/run", "b/run"]


def test_a_run_that_is_given_twice_is_shown_once(tmp_path):
    write(tmp_path / "run")
    assert len(open_runs([tmp_path / "run", tmp_path / "." / "run"])) == 1


def test_a_folder_that_holds_no_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run: it has no recipe\.json"):
        open_runs([tmp_path])
    with pytest.raises(ConfigError, match="is no folder"):
        open_runs([tmp_path / "nowhere"])


@pytest.fixture
def somebody_else():
    """Another user than the one whose files these are."""
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    os.seteuid(65534)
    yield
    os.seteuid(0)


def let_in(folder):
    """Let everybody in as far as this folder."""
    for path in (folder, *folder.parents):
        if path.is_relative_to(tempfile.gettempdir()) and path != Path(tempfile.gettempdir()):
            path.chmod(0o755)


def test_a_run_of_another_user_is_said_to_be_closed_beside_those_that_are_open(
    tmp_path_factory, request
):
    folder = tmp_path_factory.mktemp("users")
    mine, theirs = write(folder / "mine"), write(folder / "theirs")
    theirs.chmod(0o700)
    let_in(folder)
    request.getfixturevalue("somebody_else")
    books = open_runs([mine, theirs])
    assert [book.problems for book in books] == [[], ["the folder: Permission denied"]]
    with pytest.raises(ConfigError, match=r"'.*theirs' is not yours to read: Permission denied"):
        open_runs([theirs])


def test_a_journal_that_may_not_be_read_is_said(tmp_path_factory, request):
    folder = write(tmp_path_factory.mktemp("users") / "run")
    (folder / "rollouts.jsonl").chmod(0o600)
    let_in(folder)
    request.getfixturevalue("somebody_else")
    book = RunView(folder)
    book.refresh()
    assert "rollouts.jsonl: Permission denied" in book.problems
    assert len(book.metrics) == 3
