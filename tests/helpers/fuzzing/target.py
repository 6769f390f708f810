"""A parser of untrusted input with its inputs, and the mutations that several targets share."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from grupo.util.errors import ConfigError

MAX_SECONDS = 1.0  # of processor time for one input


@dataclass(frozen=True)
class Target:
    """A parser of untrusted input.

    Args:
        parse: The parser.
        inputs: Strategy of its inputs.
        errors: The errors that it may raise.
        cases: Inputs of the long test at its full share; 0 for parsers of text, which share a
            million.
        seconds: Of processor time, child processes included, that an input may take.
    """

    parse: Callable[[Any], object]
    inputs: st.SearchStrategy[Any]
    errors: tuple[type[Exception], ...] = (ConfigError,)
    cases: int = 0
    seconds: float = MAX_SECONDS


class Endless(BaseException):
    """A parser has not returned within a minute."""


def checked_parse(target: Target, example: Any, wall_seconds: float = 60.0) -> bool:
    """Parse an input in the main thread; returns whether it was accepted.

    Raises:
        Endless: It takes more than `wall_seconds`.
        AssertionError: It takes more processor time than the target allows.
    """
    previous = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)
    try:
        is_accepted, seconds = _timed_parse(target, example)
        if seconds > target.seconds:  # the first input may have imported modules
            is_accepted, seconds = _timed_parse(target, example)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert seconds <= target.seconds, f"{seconds:.1f} s for {ascii(example)[:300]}"
    return is_accepted


def _timed_parse(target: Target, example: Any) -> tuple[bool, float]:
    """Whether an input is accepted, and the seconds of processor time."""
    begin = sum(os.times()[:4])
    is_accepted = True
    try:
        target.parse(example)
    except target.errors as error:
        str(error)
        is_accepted = False
    return is_accepted, sum(os.times()[:4]) - begin


def _end(number: int, frame: object) -> None:
    raise Endless


PIECES = (
    *(b"", b"\0", b"\xff", b"\x7f", b"\x80", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"),
    *(b"\x01\0", b"\0\x01", b"PNG", b"RIFF", b"IDAT", b"data", b"fmt ", b"PAR1"),
)
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1) | st.floats(0, 0.1),  # headers stand at the beginning
        st.sampled_from(PIECES) | st.binary(max_size=4),
        st.integers(0, 8),
    ),
    min_size=1,
    max_size=4,
)


def _edited(pair: tuple[bytes, Sequence[tuple[float, bytes, int]], float]) -> bytes:
    data, edits, length = pair
    for place, piece, removed in edits:
        start = round(place * len(data))
        data = data[:start] + piece + data[start + removed :]
    return data[: round(length * len(data))]


def mutated(*files: bytes) -> st.SearchStrategy[bytes]:
    """Files of which some bytes are replaced, inserted or removed, and some the end is cut off."""
    lengths = st.just(1.0) | st.just(1.0) | st.floats(0, 1)
    return st.tuples(st.sampled_from(files), EDITS, lengths).map(_edited)
