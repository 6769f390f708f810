"""grupo report and grupo watch, as a user meets them."""

import signal
import subprocess
import sys
from threading import Timer
from urllib.request import urlopen


def test_a_report_says_where_it_is_and_how_large(grupo, home, tmp_path):
    code, out, err = grupo("report", "run", "--out", str(tmp_path / "a.html"))
    size = (tmp_path / "a.html").stat().st_size / 1e6
    assert (code, err) == (0, "")
    assert out == f"The report is in {tmp_path / 'a.html'}, {size:.1f} MB\n"


def test_a_run_that_has_ended_is_shown_on_a_terminal_once(grupo):
    code, out, err = grupo("watch", "run", "--text")
    assert (code, err) == (0, "")
    assert "finished" in out


def test_watch_serves_at_the_address_it_prints_until_it_is_interrupted(home):
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
