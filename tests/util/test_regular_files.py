"""Reading of regular files: nothing else is opened, and no more than the limit is read."""

import os
import tracemalloc

import pytest

from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from grupo.util.regular_files import (
    check_file_size,
    count_lines,
    open_regular_file,
    read_lines,
    read_regular_file,
)

FIVE = Limit("a file", 5, "bytes", "a test")
LINE = Limit("a line", 2**20, "bytes", "a test")


@pytest.mark.parametrize("data", [b"", b"1234", b"12345"])
def test_a_file_within_the_limit_is_read(data, tmp_path):
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "link").symlink_to("a")
    assert read_regular_file(tmp_path / "a", FIVE) == data
    assert read_regular_file(tmp_path / "link", FIVE) == data


def test_a_file_beyond_the_limit_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"123456")
    with pytest.raises(ConfigError, match=r"a' has 6 bytes\. Allowed: at most 5 bytes\."):
        read_regular_file(tmp_path / "a", FIVE)
    with pytest.raises(ConfigError, match=r"a' has 6 bytes\. Allowed: at most 5 bytes\."):
        check_file_size(tmp_path / "a", FIVE)
    check_file_size(tmp_path / "missing", FIVE)


@pytest.mark.parametrize("name", ["/proc/self/status", "link"])
def test_a_file_of_the_kernel_is_refused_unopened(name, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("/proc/kmsg")  # regular, of size 0, and reading it waits
    monkeypatch.setattr(os, "open", lambda *arguments: pytest.fail("opened"))
    with pytest.raises(ConfigError, match=r" is a file of the kernel\. Allowed: a regular file\."):
        open_regular_file(tmp_path / name)


def test_no_descriptor_stays_open(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_bytes(b"1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        read_regular_file(tmp_path / "a", FIVE)
        count_lines(tmp_path / "a")
        with pytest.raises(ConfigError, match=r"pipe' is a named pipe\. Allowed: a regular file\."):
            read_regular_file(tmp_path / "pipe", FIVE)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "a", FIVE)


def test_lines_have_their_ends_and_are_counted(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\ntwo")
    with (tmp_path / "a").open("rb") as file:
        assert list(read_lines(file, FIVE)) == [b"one\n", b"\n", b"two"]
    assert count_lines(tmp_path / "a") == 2


def test_a_line_beyond_the_limit_is_refused_with_its_place_after_those_before(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n12345\n")
    with (tmp_path / "a").open("rb") as file:
        lines = read_lines(file, FIVE)
        assert next(lines) == b"one\n"
        refused = r"a': the line from byte 4 on is too long\. Allowed: at most 5 bytes\."
        with pytest.raises(ConfigError, match=refused):
            next(lines)


def test_a_line_without_an_end_takes_the_memory_of_the_limit(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(100 * 2**30)  # sparse
    tracemalloc.start()
    with (tmp_path / "a").open("rb") as file, pytest.raises(ConfigError, match="is too long"):
        next(read_lines(file, LINE))
    assert tracemalloc.get_traced_memory()[1] < 4 * LINE.maximum
    tracemalloc.stop()
