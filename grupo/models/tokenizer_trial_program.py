"""The program that tries a tokenizer.json, or a rendering of a chat template; it reports as JSON.

It imports nothing of grupo, one module of transformers, and not what that module imports for other
purposes, so that it begins at once. Its last line of output is {"problem": MESSAGE}, with "" if
there is none; or {"loaded": true} if the library ended it.
"""

import importlib.util
import json
import re
import resource
import signal
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

PROBE_SECONDS = 0.5  # of processor time for all texts; ordinary tokenizers take a hundredth of it
TIME_SIGNAL = signal.SIGPROF
MEMORY = 16 * 2**30  # bytes of addresses
RENDER_MEMORY = 4 * 2**30
TEMPLATE = "-"  # in place of a file: the arguments of a rendering are on standard input
LENGTH = 40  # characters of a repeated text: few enough that a plain pattern takes no time
CHARACTERS = "a1 .\n'\u00e9\u6f22"
MAX_PATTERN_CHARACTERS = 40
ESCAPE = re.compile(r"\\[ux]\{?([0-9A-Fa-f]{2,6})")  # of a character in a pattern
# JSON has no values of NumPy and pillow; the others log, and tell which packages are installed
UNUSED = (
    *("numpy", "PIL", "PIL.Image"),
    *("transformers.utils.logging", "transformers.utils.import_utils"),
)
MIXED = (
    "",
    "It's 3.14, isn't it?",
    "a\t \n\r\n  b",
    "\u00e9\u6f22\U0001f600\u0301 \u200b",
    "<s>[]",
)


def main(file: str, seconds: int) -> None:
    """Load a file, encode texts and decode their tokens; or render a chat template.

    Args:
        file: A tokenizer.json, or `TEMPLATE`.
        seconds: Time after which the process ends, also if grupo has ended.
    """
    signal.alarm(seconds)
    _limit(resource.RLIMIT_AS, RENDER_MEMORY if file == TEMPLATE else MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    try:
        _render(**json.load(sys.stdin)) if file == TEMPLATE else _try(file)
    except BaseException as error:  # the library's panics are no `Exception`
        _report(problem=str(error) or type(error).__name__)
    else:
        _report(problem="")


def _limit(kind: int, value: int) -> None:
    """Set a limit of this process, unless a lower one is set already."""
    _, most = resource.getrlimit(kind)
    if most == resource.RLIM_INFINITY or value < most:
        resource.setrlimit(kind, (value, value))


def _try(file: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_padding()  # transformers sets both for each call
    tokenizer.no_truncation()
    _report(loaded=True)
    with open(file, encoding="utf-8") as opened:
        probes = [*MIXED, *map(_repeated, _characters(json.load(opened)))]
    signal.setitimer(signal.ITIMER_PROF, PROBE_SECONDS)
    for text in probes:
        for adds_special_tokens in (True, False):
            with suppress(Exception):  # a text outside of a small vocabulary, and no panic
                encoding = tokenizer.encode(text, add_special_tokens=adds_special_tokens)
                tokenizer.decode(encoding.ids, skip_special_tokens=adds_special_tokens)
    signal.setitimer(signal.ITIMER_PROF, 0)


def _render(max_chars: int, seconds: float, arguments: dict[str, Any]) -> None:
    """Render a template as transformers does; raises if that takes too much, and on no other error.

    Args:
        max_chars: The largest allowed length of the text.
        seconds: Processor time after which the process ends.
        arguments: Arguments of transformers' function.
    """
    _skip_init("transformers")
    _skip_init("transformers.utils")
    for module in UNUSED:
        sys.modules[module] = _StandIn(module)
    from transformers.utils.chat_template_utils import render_jinja_template

    _report(loaded=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    length = 0
    try:
        ((text,), _) = render_jinja_template(**arguments)
        length = len(text)
    except MemoryError as error:
        raise RuntimeError("takes more memory than a prompt can need") from error
    except Exception:  # it is raised again, with its message, where the text is needed
        pass
    signal.setitimer(signal.ITIMER_PROF, 0)
    if length > max_chars:
        raise RuntimeError(f"makes {length:,} characters of its messages")


def _skip_init(package: str) -> None:
    """Let modules of a package be imported without its own code, which takes seconds."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    module = types.ModuleType(package)
    module.__path__ = list(spec.submodule_search_locations or ())
    sys.modules[package] = module


class _Unused:
    """Any class or object of a module that has a stand-in: no value of JSON is an instance."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *_: Any, **__: Any) -> "_Unused":
        return self

    def __getattr__(self, name: str) -> "_Unused":
        return self


class _StandIn(types.ModuleType):
    """A module that takes the place of one whose import would take most of the time."""

    def __getattr__(self, name: str) -> type[_Unused]:
        return _Unused


def _repeated(character: str) -> str:
    """A text on which an ambiguous pattern tries every partition: nothing matches at its end."""
    return character * LENGTH + "\0"


def _characters(data: Any) -> str:
    """Characters of every kind, and those that stand in the patterns of a tokenizer."""
    patterns = "".join(_patterns(data))
    codes = (int(code, 16) for code in ESCAPE.findall(patterns))
    escaped = "".join(chr(code) for code in codes if code <= sys.maxunicode)
    found = "".join(dict.fromkeys(escaped + patterns))
    return "".join(dict.fromkeys(CHARACTERS + found[:MAX_PATTERN_CHARACTERS]))


def _patterns(data: Any) -> Iterator[str]:
    """The patterns of a tokenizer; the model, which has none, is left out."""
    if isinstance(data, list):
        for item in data:
            yield from _patterns(item)
    for name, value in data.items() if isinstance(data, dict) else ():
        if name == "Regex" and isinstance(value, str):
            yield value
        elif name not in ("model", "added_tokens"):
            yield from _patterns(value)


def _report(**report: Any) -> None:
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
