"""Files that options name: what is no regular file is refused, and never waited for."""

import os
import re
import signal

import pytest

from grupo.cli.main import main
from grupo.envs.tools import KeywordSearch
from grupo.rollouts.turns import WithProgram
from grupo.util.errors import ConfigError

KINDS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "kernel": lambda path: path.symlink_to("/proc/kmsg"),
}
OPTIONS = {
    "recipe": ("train", "{}.toml"),
    "python": ("train", "{}.py"),
    "tasks": ("train", "--tasks", "{}.jsonl"),
    "csv": ("train", "--tasks", "{}.csv"),
    "parquet": ("train", "--tasks", "{}.parquet"),
    "reward": ("train", "--reward", "{}.py:correct"),
    "method": ("train", "--method", "{}.py:mine"),
    "model": ("train", "--model", "{}.gguf"),
    "migrate": ("migrate", "{}.yaml"),
}


@pytest.fixture(autouse=True)
def no_waiting():
    """A command that waits is killed with the whole test process, as no time limit would fire."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_file_that_is_no_regular_one_is_refused_unread(
    option, kind, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    arguments = [text.replace("{}", "named") for text in OPTIONS[option]]
    suffix = next(text for text in arguments if "named" in text).partition("named")[2][:8]
    KINDS[kind](tmp_path / f"named{suffix.split(':')[0]}")
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert re.search(r"named|/dev/zero|/proc/kmsg", error)  # a link, or what it leads to
    assert "Traceback" not in error
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("component", [KeywordSearch, WithProgram])
def test_a_file_of_a_strategy_that_is_no_regular_one_is_refused_unread(component, kind, tmp_path):
    KINDS[kind](tmp_path / "named")
    with pytest.raises(ConfigError, match=r"named.* Allowed: a (regular|text) file"):
        component(str(tmp_path / "named")).check()
