"""The cache of converted models: several processes, full disks, and files that change."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.models.gguf import cache as module
from grupo.models.gguf.cache import converted_folder
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_STOPPED, CommandError
from tests.helpers import gguf_program
from tests.helpers.paths import CHILD_ENV
from tests.helpers.tiny_gguf import tiny_model, write_gguf

LINE = "it is converted to float32"


def start(*arguments: str | Path, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    """A process that converts a file as soon as it gets a line."""
    process = subprocess.Popen(
        [*prefix, sys.executable, gguf_program.__file__, *map(str, arguments)],
        env={**os.environ, **CHILD_ENV},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize("locks", ["with locks", "without-locks"])
def test_two_processes_that_convert_at_once_have_the_same_folder(file, cache, locks):
    processes = [start(file, locks), start(file, locks)]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    (folder,) = {out.strip() for out, _ in outputs}
    lines = [LINE in err for _, err in outputs]
    assert any(lines)
    assert not (all(lines) and locks == "with locks")
    assert [str(path) for path in cache.iterdir()] == [folder]
    model = AutoModelForCausalLM.from_pretrained(folder)
    expected = tiny_model()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, expected.get_parameter(name))


@contextmanager
def file_size_limit(limit: int) -> Generator[None]:
    """Files of this process may have `limit` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [300, 20_000])
def test_a_limit_of_files_ends_in_one_message_and_leaves_nothing(file, cache, limit):
    with file_size_limit(limit), pytest.raises(CommandError) as caught:
        converted_folder(file)
    assert caught.value.exit_code == EXIT_STOPPED
    assert "it is not converted, which needs 0 MB in" in str(caught.value)
    assert "File too large" in str(caught.value)
    assert "GRUPO_HOME" in str(caught.value)
    assert list(cache.iterdir()) == []
    assert converted_folder(file).is_dir()


@pytest.mark.slow
def test_a_full_disk_ends_in_one_message_and_leaves_nothing(tmp_path, file, cache):
    namespace = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    mount = 'mkdir -p "$1" && mount -t tmpfs -o size=64k none "$1"'
    command = [*namespace, mount, "sh", cache]
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this system does not let a test mount a disk")
    # after the conversion the files that are left on the disk are listed
    run = f'{mount}; "$2" "$3" "$4"; code=$?; find "$1" -mindepth 1 >&2; exit $code'
    process = start(file, prefix=(*namespace, run, "sh", str(cache)))
    _, err = process.communicate("\n", timeout=120)
    assert process.returncode == EXIT_STOPPED
    line, message = err.splitlines()
    assert LINE in line
    assert "No space left on device" in message


def test_a_folder_that_cannot_be_made_ends_in_one_message(tmp_path, file, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "taken"))
    with pytest.raises(CommandError, match="is not converted"):
        converted_folder(file)


def test_a_killed_conversion_is_done_again(file, cache):
    # a process that was killed leaves an unfinished folder, which nothing reads
    (cache / "tmp.12345678").mkdir(parents=True)
    folder = converted_folder(file)
    assert (folder / "config.json").is_file()


def test_a_file_that_changes_while_it_is_read_is_not_kept(file, cache, monkeypatch):
    original = module.check_convertible

    def replace(path: Path, header: object) -> None:
        original(path, header)
        write_gguf(path, tiny_model(seed=1))

    monkeypatch.setattr(module, "check_convertible", replace)
    with pytest.raises(ConfigError, match="changed while it was read"):
        converted_folder(file)
    assert not cache.exists()


def test_an_unchanged_file_is_read_once_in_a_process(file, monkeypatch):
    folder = converted_folder(file)
    monkeypatch.setattr(module, "sha256_of", lambda path: pytest.fail("it is read again"))
    assert converted_folder(file) == folder
