"""`grupo report` and `grupo watch` from a user's side."""

import signal
import subprocess
import sys
from threading import Timer
from urllib.request import urlopen

import pytest


def test_report_prints_its_path_and_size(grupo, home, tmp_path):
    code, out, err = grupo("report", "run", "--out", str(tmp_path / "a.html"))
    size = (tmp_path / "a.html").stat().st_size / 1e6
    assert (code, err) == (0, "")
    assert out == f"The report is in {tmp_path / 'a.html'}, {size:.1f} MB\n"


def test_watch_shows_a_finished_run_once_in_the_terminal(grupo):
    code, out, err = grupo("watch", "run", "--text")
    assert (code, err) == (0, "")
    assert "finished" in out


@pytest.mark.slow
def test_watch_serves_at_the_printed_address_until_interrupted(home):
    command = [sys.executable, "-u", "-m", "grupo", "watch", str(home / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        address = process.stdout.readline().decode().strip()
        with urlopen(address) as page:
            assert b"<title>grupo</title>" in page.read()
        process.send_signal(signal.SIGINT)
        killer = Timer(30, process.kill)
        killer.start()
        _, err = process.communicate()
        killer.cancel()
    assert (process.returncode, err) == (0, b"")
