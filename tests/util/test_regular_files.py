"""Reading of regular files: nothing else is opened, and no more than the limit is read."""

import os
from pathlib import Path

import pytest

from grupo.util import regular_files
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from grupo.util.regular_files import read_regular_file

FIVE = Limit("a file", 5, "bytes", "a test")


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


def test_a_file_of_the_kernel_that_states_no_size_is_read_up_to_the_limit():
    assert Path("/proc/self/status").stat().st_size == 0
    with pytest.raises(
        ConfigError, match=r"status' has more than 5 bytes\. Allowed: at most 5 bytes\."
    ):
        read_regular_file(Path("/proc/self/status"), FIVE)


def test_a_file_of_the_kernel_without_anything_to_read_now_is_empty(tmp_path, monkeypatch):
    reader, writer = os.pipe()  # as /proc/kmsg, which root alone may read
    os.set_blocking(reader, False)
    monkeypatch.setattr(regular_files, "open_regular_file", lambda path: reader)
    assert read_regular_file(tmp_path / "a", FIVE) == b""
    os.close(writer)


def test_no_descriptor_stays_open(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_bytes(b"1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        read_regular_file(tmp_path / "a", FIVE)
        with pytest.raises(ConfigError, match=r"pipe' is a named pipe\. Allowed: a regular file\."):
            read_regular_file(tmp_path / "pipe", FIVE)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "a", FIVE)
