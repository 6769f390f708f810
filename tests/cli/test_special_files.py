"""Files that options name: what is no regular file is refused, and never waited for."""

import os
import signal

import pytest

from grupo.cli.main import main

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
    "documents": (
        "ask",
        "--strategy",
        "MonteCarlo(associate=LookUp(KeywordSearch('{}.txt')))",
        "a",
    ),
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
    KINDS[kind](tmp_path / f"named{suffix.split(':')[0].split(chr(39))[0]}")
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
    assert len(os.listdir(tmp_path)) == 1
