"""Trials of tokenizer.json and of a chat template in a process of their own, before this process.

The library of tokenizers is written in Rust. Some malformed files make it panic, which prints a
backtrace to the terminal, or end the whole process; some patterns backtrack for seconds. A chat
template is a program of the model's author, which may not end, or may fill memory.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.utils.hub import cached_file

from grupo.core.limits import ROW_TEXT, TOKENIZER_FILE
from grupo.models import tokenizer_trial_program
from grupo.models.tokenizer_trial_program import PROBE_SECONDS, TEMPLATE
from grupo.util.errors import ConfigError
from grupo.util.regular_files import read_regular_file

FILE = "tokenizer.json"
LOAD_SECONDS = 60  # in which the process must have begun, read the file and ended
RENDER_SECONDS = 2.0  # of processor time; ordinary templates take a thousandth of it
BYTES_PER_SECOND = 2**20  # of a large file; ordinary ones are read 20 times as fast
SIZE_BITS = 6  # texts of up to 2^5, 2^11, 2^17 … characters are tried apart
MAX_CHARS = 300  # of the library's message
ALLOWED = "a file that the library `tokenizers` reads, and with which it encodes and decodes text"
TOO_SLOW = (
    f"encoding short texts takes more than {PROBE_SECONDS:g} s, probably because a pattern"
    " backtracks"
)
TEMPLATE_ALLOWED = (
    f"a template that renders in {RENDER_SECONDS:g} s, to at most {ROW_TEXT.maximum:,} characters"
)
_template_problems: dict[tuple[Any, ...], str] = {}  # of a template, by kind of rendering
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
        digest = sha256(read_regular_file(Path(file), TOKENIZER_FILE)).hexdigest()
    except OSError as error:
        raise ConfigError(f"model: {file} cannot be read: {error.strerror}.") from error
    if digest not in _problems:
        _problems[digest] = _trial(file)
    if problem := _problems[digest]:
        raise ConfigError(f"model: {file}: {problem}. Allowed: {ALLOWED}.")


def check_template_works(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    kwargs: Mapping[str, Any] = {},
) -> None:
    """Raise `ConfigError` for a chat template that does not end, or makes too much of messages.

    Each kind of rendering is tried once: with and without tools, an answer to begin or to continue,
    other arguments of the template, and messages that are many times as long.

    Args:
        tokenizer: The tokenizer; a template that it does not have passes.
        messages: The messages of the first rendering.
        options: Arguments of `apply_chat_template`.
        kwargs: Further variables of the template.
    """
    template = tokenizer.get_chat_template(tools=options["tools"])
    kinds = tuple((name, _kind(value)) for name, value in sorted(kwargs.items()))
    key = (template, *map(bool, options.values()), kinds, _size_class([*messages]))
    if key not in _template_problems:
        _template_problems[key] = _template_trial(
            {
                "conversations": [messages],
                "chat_template": template,
                **tokenizer.special_tokens_map,
                **kwargs,
                **options,
            }
        )
    if problem := _template_problems[key]:
        raise ConfigError(
            f"model: {tokenizer.name_or_path!r}: its chat template {problem}."
            f" Allowed: {TEMPLATE_ALLOWED}."
        )


def _size_class(value: object) -> int:
    return len(json.dumps(value, default=str)).bit_length() // SIZE_BITS


def _kind(value: object) -> object:
    """A value that selects a branch of a template, and of other values the type and the size."""
    if isinstance(value, bool):
        return value
    size = value.bit_length() if isinstance(value, int) else _size_class(value)
    return type(value).__name__, size


def _trial(file: str) -> str:
    """Why a file cannot be used; "" if it can."""
    seconds = LOAD_SECONDS + Path(file).stat().st_size // BYTES_PER_SECOND
    return _run(file, seconds, TOO_SLOW)


def _template_trial(arguments: Mapping[str, Any]) -> str:
    """Why a template cannot be rendered here; "" if it can, or raises an error."""
    limits = {"max_chars": ROW_TEXT.maximum, "seconds": RENDER_SECONDS}
    request = {**limits, "arguments": arguments}
    data = json.dumps(request, default=str).encode()
    return _run(TEMPLATE, LOAD_SECONDS, f"takes more than {RENDER_SECONDS:g} s", data)


def _run(file: str, seconds: int, too_slow: str, data: bytes = b"") -> str:
    """The problem that the program finds; "" if there is none.

    Args:
        file: Its file, or `TEMPLATE`.
        seconds: Time after which it ends.
        too_slow: The problem if the time of the trial itself runs out.
        data: Its input.
    """
    # -P: modules beside the program have names of others
    program = [sys.executable, "-P", tokenizer_trial_program.__file__, file, str(seconds)]
    result = subprocess.run(
        program,
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # backtraces
        check=False,
    )
    if result.returncode == -signal.SIGALRM:
        return f"reading it takes more than {seconds} s"
    return _problem(result.stdout, result.returncode, too_slow)


def _problem(output: bytes, code: int, too_slow: str) -> str:
    """The problem that the program reports, or that its end shows."""
    try:
        report = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        report = {}
    if "problem" in report:
        return " ".join(report["problem"].split())[:MAX_CHARS].rstrip(".")
    is_loaded = bool(report.get("loaded"))
    if is_loaded and code == -tokenizer_trial_program.TIME_SIGNAL:
        return too_slow
    return f"the library ends with code {code} while it {'encodes' if is_loaded else 'reads it'}"
