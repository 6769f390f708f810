"""Rollouts as commits of git, with their parents."""

import shutil
import subprocess

import pytest

from grupo.report.git_history import FILE_NAME, write_git_history
from grupo.report.read_run import read_numbered_rollouts
from grupo.report.rollouts import select_rollouts
from grupo.util.errors import ConfigError

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs the program git")


def attempt(step, text, reward=0.0, **more):
    return {
        "step": step,
        "task": "t",
        "prompt": "?",
        "text": text,
        "turns": [],
        "reward": reward,
        "reward_terms": {"points": reward},
        "advantage": None,
        "length": 1,
        "truncated": False,
        "error": "",
        **more,
    }


JOURNAL = [
    attempt(1, "alone"),
    attempt(1, "first\n", 0.25),
    attempt(2, "é \ud800", 0.5, parents=["1.1"]),
    attempt(3, "other", 0.75, parents=["2.0", "1.1", "0.7"]),
    attempt(3, "last", 1.0, parents=["2.0", "1.0"]),
]


def git(folder, *arguments):
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def parents_of(folder, tag):
    """The texts of the parent commits."""
    commits = git(folder, "log", "-1", "--format=%P", tag).split()
    return [git(folder, "show", f"{commit}:{FILE_NAME}") for commit in commits]


def test_records_are_numbered_within_their_step(write_run):
    rollouts = [*read_numbered_rollouts(write_run(JOURNAL))]
    assert [r["id"] for r in rollouts] == ["1.0", "1.1", "2.0", "3.0", "3.1"]
    assert [r["parents"] for r in rollouts[:3]] == [[], [], ["1.1"]]


@needs_git
def test_a_selected_rollout_is_written_with_its_ancestors(write_run, tmp_path):
    run, folder = write_run(JOURNAL), tmp_path / "git"
    assert write_git_history(run, folder, select_rollouts(run, best=1)) == 4
    assert git(folder, "tag").split() == ["1.0", "1.1", "2.0", "3.1"]
    assert git(folder, "rev-parse", "main") == git(folder, "rev-parse", "3.1^{commit}")
    assert (folder / FILE_NAME).read_text() == "last"
    assert git(folder, "log", "-1", "--format=%B", "3.1").startswith("attempt 3.1, reward 1.0\n")
    assert parents_of(folder, "1.1") == []
    assert parents_of(folder, "2.0") == ["first\n"]
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "fsck", "--strict") == ""


@needs_git
def test_every_commit_has_the_text_of_its_attempt(write_run, tmp_path):
    run, folder = write_run(JOURNAL), tmp_path / "git"
    assert write_git_history(run, folder, select_rollouts(run)) == 5
    for rollout in read_numbered_rollouts(run):
        git(folder, "checkout", "--quiet", rollout["id"])
        content = (folder / FILE_NAME).read_bytes()
        assert content == rollout["text"].encode("utf-8", "surrogatepass")
    # an attempt of another run, 0.7, is not linked
    assert git(folder, "log", "-1", "--format=%P", "3.0").split() == [
        git(folder, "rev-parse", f"{tag}^{{commit}}").strip() for tag in ("2.0", "1.1")
    ]


@needs_git
def test_equal_runs_have_equal_commits(write_run, tmp_path):
    run = write_run(JOURNAL)
    for name in "ab":
        write_git_history(run, tmp_path / name, select_rollouts(run))
    assert git(tmp_path / "a", "rev-parse", "main") == git(tmp_path / "b", "rev-parse", "main")


@needs_git
def test_a_folder_that_exists_or_has_no_parent_is_refused(write_run, tmp_path):
    run = write_run(JOURNAL)
    selected = select_rollouts(run)
    with pytest.raises(ConfigError, match=r"^git: '.*' exists\. Name a new folder"):
        write_git_history(run, tmp_path, selected)
    with pytest.raises(ConfigError, match="is in a folder that does not exist"):
        write_git_history(run, tmp_path / "a" / "b", selected)
    with pytest.raises(ConfigError, match="no rollout matches"):
        write_git_history(run, tmp_path / "a", [])
    assert not (tmp_path / "a").exists()


def test_a_machine_without_git_is_refused_by_name(write_run, tmp_path, monkeypatch):
    run = write_run(JOURNAL)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"git: the program git is not installed"):
        write_git_history(run, tmp_path / "a", select_rollouts(run))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"parents": "1.0"}, "parents: '1.0' is no list"), ({"step": "1"}, "step: '1' is of another")],
)
def test_a_forged_journal_is_refused(write_run, changes, message):
    run = write_run([attempt(1, "a") | changes])
    with pytest.raises(ConfigError, match=message):
        [*read_numbered_rollouts(run)]


@needs_git
def test_nothing_is_left_where_git_fails(write_run, tmp_path):
    run = write_run([attempt(10**30, "x")])
    with pytest.raises(ConfigError, match=r"git ended with code 128: .*Invalid raw date") as caught:
        write_git_history(run, tmp_path / "git", select_rollouts(run))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "git").exists()


@needs_git
def test_names_and_values_of_the_journal_forge_no_line_of_a_message(write_run, tmp_path):
    terms = {"a\nreward 9\x1b[31m": "1\ntask: other"}
    run = write_run([attempt(1, "x", "0\nforged", task="t\n\0forged", reward_terms=terms)])
    write_git_history(run, tmp_path / "git", select_rollouts(run))
    lines = git(tmp_path / "git", "log", "-1", "--format=%B").rstrip("\n").split("\n")
    assert len(lines) == 4
    assert not any(line.startswith(("forged", "reward 9", "task: other")) for line in lines)
    assert "\x1b" not in "".join(lines)
