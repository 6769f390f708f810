"""Malformed command lines, files and settings from a seeded generator, and a program to run them.

Each case goes through the real command line up to the point where work would start. It passes if it
ends in success or in one of our errors: no other exception, no traceback, no control character.
"""

import hashlib
import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.malformed_values import (
    BAD_JSON,
    BAD_TEXTS,
    FIELDS,
    HAND_MADE,
    MODEL_FILES,
    ROWS,
    VALID_LINES,
    comparison_data,
)

MAX_MESSAGE = 5000  # characters on standard error: a message of the largest length, and a hint
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of the program's own, around whole messages
OUR_CODES = (0, 2, 3, 4)


class WorkStarted(BaseException):
    """A command passed all checks."""


@dataclass(frozen=True)
class Case:
    """One malformed input.

    Args:
        arguments: Arguments of `grupo`.
        files: Contents of files to write first, by path.
        copy: Folder to copy first, and the name of the copy.
    """

    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    copy: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        contents = {name: content[:200] for name, content in self.files.items()}
        return ascii((self.arguments, contents))[:600]


@dataclass(frozen=True)
class Outcome:
    """The end of a case.

    Args:
        failure: Why the case fails; "" if it passes.
        seconds: Its duration.
    """

    failure: str
    seconds: float


def generate_cases(folder: Path, count: int, seed: int = 0) -> list[Case]:
    """The hand-made cases, and mutations of valid inputs up to `count` cases in all."""
    rng = random.Random(seed)
    recipe = json.loads((folder / "run" / "recipe.json").read_text())["recipe"]
    kinds: Sequence[tuple[int, Callable[[], Case]]] = (
        (30, lambda: _mutated_line(rng)),
        (30, lambda: _bad_field(rng)),
        (20, lambda: _mutated_rows(rng)),
        (12, lambda: _mutated_recipe(rng, recipe)),
        (4, lambda: _mutated_comparison(rng, recipe)),
        (4, lambda: _mutated_model_file(rng, folder)),
    )
    cases = [Case(arguments) for arguments in HAND_MADE]
    weights, makers = zip(*kinds, strict=True)
    while len(cases) < count:
        (make,) = rng.choices(makers, weights)
        cases.append(make())
    return cases[:count]


def _mutated_line(rng: random.Random) -> Case:
    line = list(rng.choice(VALID_LINES))
    for _ in range(rng.randint(1, 2)):
        place = rng.randrange(len(line) + 1)
        match rng.randrange(5):
            case 0:
                line.insert(place, rng.choice(BAD_TEXTS))
            case 1:
                line[place : place + 1] = []
            case 2 if line:
                line[place : place + 1] = [_mutated_text(rng, line[place - 1])]
            case 3 if line:
                line.insert(place, rng.choice(line))
            case _:
                line[place : place + 1] = [rng.choice(BAD_TEXTS)]
    return Case(tuple(line))


def _bad_field(rng: random.Random) -> Case:
    name = rng.choice(FIELDS)
    valid, *_ = rng.choice([(text,) for text in BAD_TEXTS])
    value = valid if rng.random() < 0.6 else _mutated_text(rng, rng.choice(FIELD_VALUES))
    return Case(("recipe.py", f"--{name}={value}"))


FIELD_VALUES = (
    *("0.5", "3", "Cosine(1e-5, 0)", "Linear(start=1.0, end=0.0)", "Lora(8, targets='q_proj')"),
    *("Updates(2, minibatches=4)", "('a', 'b')", "Warmup(0.1, Cosine(1, 0))", "Adam(eps=1e-8)"),
)


def _mutated_rows(rng: random.Random) -> Case:
    lines = [json.dumps(row).encode() for row in rng.choices(ROWS, k=8)]
    place = rng.randrange(len(lines))
    if rng.random() < 0.5:
        lines[place] = _mutated_bytes(rng, lines[place])
    else:
        row = json.loads(lines[place])
        lines[place] = _json_text(_mutated_json(rng, row)).encode("utf-8", "surrogatepass")
    text = b"\n".join(lines)
    if rng.random() < 0.1:
        text = _mutated_bytes(rng, text)
    return Case(("recipe.py", "--tasks", "case.jsonl", "--eval-tasks", "2"), {"case.jsonl": text})


def _mutated_recipe(rng: random.Random, recipe: Any) -> Case:
    data = _mutated_json(rng, recipe)
    text = json.dumps(data, sort_keys=True)
    whole = json.dumps({"fingerprint": hashlib.sha256(text.encode()).hexdigest(), "recipe": data})
    content = whole.encode()
    if rng.random() < 0.2:
        content = _mutated_bytes(rng, content)
    command = rng.choice(("resume", "doctor", "eval", "rollouts"))
    return Case((command, "case"), {"case/recipe.json": content}, ("run", "case"))


def _mutated_comparison(rng: random.Random, recipe: Any) -> Case:
    data = comparison_data(recipe)
    content = _json_text(_mutated_json(rng, data)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        content = _mutated_bytes(rng, content)
    return Case(("compare", "--out", "case"), {"case/comparison.json": content})


def _mutated_model_file(rng: random.Random, folder: Path) -> Case:
    name = rng.choice(MODEL_FILES)
    data = json.loads((folder / "model" / name).read_text())
    content = _json_text(_mutated_json(rng, data)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        content = _mutated_bytes(rng, content)
    return Case(("recipe.py", "--model", "case"), {f"case/{name}": content}, ("model", "case"))


def _mutated_text(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    inserted = rng.choice(("", "(", ")", "[", "'", '"', ",", "=", "-", "*", ".", ":", "\x1b", "9"))
    return text[:place] + inserted + text[place + rng.randrange(3) :]


def _mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    inserted = rng.choice((b"", b"\x00", b"\xff", b"{", b"]", b'"', b"\\", b"NaN", b"\n", b"1e999"))
    return content[:place] + inserted + content[place + rng.randrange(4) :]


def _mutated_json(rng: random.Random, data: Any) -> Any:
    """The data with one part of it, chosen at random, replaced, removed or renamed."""
    if isinstance(data, dict) and data and rng.random() < 0.85:
        key = rng.choice(list(data))
        rest = {k: v for k, v in data.items() if k != key}
        action = rng.random()
        if action < 0.1:
            return rest
        if action < 0.2:
            return {**rest, rng.choice(BAD_TEXTS): data[key]}
        return {**data, key: _mutated_json(rng, data[key])}
    if isinstance(data, list) and data and rng.random() < 0.7:
        place = rng.randrange(len(data))
        return [*data[:place], _mutated_json(rng, data[place]), *data[place + 1 :]]
    return rng.choice(BAD_JSON)


def _json_text(data: Any) -> str:
    """JSON with Python's extensions: NaN, infinity and lone surrogates."""
    return json.dumps(data)


class CaseRunner:
    """Runs cases in a folder, through the command line in this process.

    Args:
        folder: The folder; it is left as it was.
        run: Runs a command line; returns exit code, standard output and standard error.
    """

    def __init__(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        self.folder = folder
        self.run = run
        self.kept = {path.name for path in folder.iterdir()}

    def __call__(self, case: Case) -> Outcome:
        self._write(case)
        begin = time.monotonic()
        try:
            failure = self._failure(case)
        finally:
            self._remove_new_files()
        return Outcome(failure, time.monotonic() - begin)

    def _failure(self, case: Case) -> str:
        try:
            code, _, message = self.run(*case.arguments)
        except WorkStarted:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]!r}"
        return "".join(_defects(code, COLOUR.sub("", message)))

    def _write(self, case: Case) -> None:
        original, copy = case.copy
        if copy:
            shutil.copytree(self.folder / original, self.folder / copy, copy_function=os.link)
        for name, content in case.files.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)  # rather than written, because it may be a hard link
            path.write_bytes(content)

    def _remove_new_files(self) -> None:
        for path in self.folder.iterdir():
            if path.name not in self.kept:
                is_folder = path.is_dir() and not path.is_symlink()
                shutil.rmtree(path) if is_folder else path.unlink()


def _defects(code: int, message: str) -> Iterator[str]:
    if code not in OUR_CODES:
        yield f"exit code {code}: {message[:300]!r}"
    if code and not message.strip():
        yield "no message"
    if "Traceback" in message:
        yield f"a traceback: {message[-300:]!r}"
    if CONTROL.search(message):
        yield f"control characters: {message[:300]!r}"
    if len(message) > MAX_MESSAGE:
        yield f"a message of {len(message)} characters"
