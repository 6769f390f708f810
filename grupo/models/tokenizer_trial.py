"""A trial of tokenizer.json in a process of its own, before this process loads it.

The library of tokenizers is written in Rust. Some malformed files make it panic, which prints a
backtrace to the terminal, or end the whole process; some patterns backtrack for seconds.
"""

import json
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from transformers.utils.hub import cached_file

from grupo.models import tokenizer_trial_program
from grupo.models.tokenizer_trial_program import PROBE_SECONDS
from grupo.util.errors import ConfigError

FILE = "tokenizer.json"
LOAD_SECONDS = 60  # in which the process must have begun, read the file and ended
BYTES_PER_SECOND = 2**20  # of a large file; ordinary ones are read 20 times as fast
MAX_CHARS = 300  # of the library's message
ALLOWED = "a file that the library `tokenizers` reads, and with which it encodes and decodes text"
TOO_SLOW = (
    f"encoding short texts takes more than {PROBE_SECONDS:g} s, probably because a pattern"
    " backtracks"
)
_problems: dict[str, str] = {}  # of a file, by the hash of its content: each is tried once


def check_tokenizer_works(path: str) -> None:
    """Raise `ConfigError` for a tokenizer.json that ends, blocks or panics the library.

    Args:
        path: Folder or hub name of a model; one without the file passes.
    """
    file = cached_file(
        path,
        FILE,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if file is None:
        return
    try:
        digest = sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"model: {file} cannot be read: {error.strerror}.") from error
    if digest not in _problems:
        _problems[digest] = _trial(file)
    if problem := _problems[digest]:
        raise ConfigError(f"model: {file}: {problem}. Allowed: {ALLOWED}.")


def _trial(file: str) -> str:
    """Why a file cannot be used; "" if it can."""
    seconds = LOAD_SECONDS + Path(file).stat().st_size // BYTES_PER_SECOND
    # -P: modules beside the program have names of others
    program = [sys.executable, "-P", str(tokenizer_trial_program.__file__), file, str(seconds)]
    result = subprocess.run(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # backtraces
        check=False,
    )
    if result.returncode == -signal.SIGALRM:
        return f"reading it takes more than {seconds} s"
    return _problem(result.stdout, result.returncode)


def _problem(output: bytes, code: int) -> str:
    """The problem that the program reports, or that its end shows."""
    try:
        report = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        report = {}
    if "problem" in report:
        return " ".join(report["problem"].split())[:MAX_CHARS].rstrip(".")
    is_loaded = bool(report.get("loaded"))
    if is_loaded and code == -tokenizer_trial_program.TIME_SIGNAL:
        return TOO_SLOW
    return f"the library ends with code {code} while it {'encodes' if is_loaded else 'reads it'}"
