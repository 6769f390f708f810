"""A model of a disk that loses power: its possible states after each call of a save.

File contents are durable once the file is fsynced, and names once the folder is. All other changes
may be lost, in any combination. Unsynced contents may also be torn at multiples of 512 bytes, have
holes of 512 bytes, or be all zeros. (Real file systems lose less.)
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from random import Random
from typing import Any

SECTOR = 512
Call = tuple[Any, ...]  # name, path, arguments
Tree = Mapping[str, bytes | None]  # path -> bytes of a file, None for a folder


class RecordingDisk:
    """Executes every call, and records it with its path."""

    def __init__(self, root: Path) -> None:
        self.root, self.files, self.calls = root, {}, []

    def __call__(self, call, /, *args, **kwargs):
        result = call(*args, **kwargs)
        name = {"replace": "rename"}.get(call.__name__, call.__name__)
        if name == "open":
            self.files[result] = self.inside(args[0])
            self.calls += [("create", self.files[result])] if args[1] & os.O_CREAT else []
        elif name == "write":
            self.calls.append((name, self.files[args[0]], bytes(args[1])[:result]))
        elif name in ("fsync", "ftruncate"):
            self.calls.append((name, self.files[args[0]], *args[1:]))
        elif name != "close":
            paths = [path for path in args if not isinstance(path, int)]  # not the mode of mkdir
            self.calls.append((name, *map(self.inside, paths)))
        return result

    def inside(self, path: Path | str) -> str:
        return Path(path).relative_to(self.root).as_posix()


def write_calls(calls: Sequence[Call], path: Path) -> None:
    """Write recorded calls to a file, for another process."""
    path.write_text(
        json.dumps([[x.decode("latin-1") if isinstance(x, bytes) else x for x in c] for c in calls])
    )


def read_calls(path: Path) -> list[Call]:
    """The calls in a file that `write_calls` wrote."""
    calls = json.loads(path.read_text())
    return [(*c[:2], c[2].encode("latin-1")) if c[0] == "write" else tuple(c) for c in calls]


class Disk:
    """Files and folders by inode number, as visible to processes and as durable on the disk."""

    def __init__(self, tree: Tree) -> None:
        self.visible: dict[int, dict[str, int] | bytes] = {0: {}}
        self.durable: dict[int, dict[str, int] | bytes] = {0: {}}
        self.pending_names: list[tuple[int, dict[str, int | None]]] = []  # changes not yet durable
        for path, content in sorted(tree.items()):
            self.add(path, {} if content is None else content)
        for number in list(self.visible):
            self.sync(number)

    def find(self, path: str) -> int:
        number = 0
        for name in path.split("/") if path != "." else ():
            number = self.visible[number][name]
        return number

    def exists(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self.visible[self.find(folder or ".")]

    def add(self, path: str, content: dict | bytes) -> None:
        number = len(self.visible)
        self.visible[number], self.durable[number] = content, type(content)()
        self.change(path, number)

    def change(self, path: str, number: int | None, gone: str = "") -> None:
        """A change of one folder, which is durable or lost as a whole."""
        folder, _, name = path.rpartition("/")
        where = self.find(folder or ".")
        names = {**({gone.rpartition("/")[2]: None} if gone else {}), name: number}
        self.pending_names.append((where, names))
        self.visible[where] = applied(self.visible[where], names)

    def sync(self, number: int) -> None:
        self.durable[number] = self.visible[number]
        self.pending_names = [change for change in self.pending_names if change[0] != number]

    def do(self, call: str, path: str, *rest) -> None:
        match call:
            case "mkdir":
                self.add(path, {})
            case "create" if not self.exists(path):
                self.add(path, b"")
            case "write":
                self.visible[self.find(path)] += rest[0]
            case "ftruncate":
                self.visible[self.find(path)] = self.visible[self.find(path)][: rest[0]]
            case "fsync":
                self.sync(self.find(path))
            case "rename":
                self.change(rest[0], self.find(path), gone=path)
            case "unlink" | "rmdir":
                self.change(path, None)

    def after_power_loss(self, rng: Random, most: int) -> Iterator[Tree]:
        """Possible states after power loss: all combinations, or `most` of them at random."""
        unsynced = [
            n for n, x in self.visible.items() if isinstance(x, bytes) and x != self.durable[n]
        ]
        contents = [
            [(n, torn) for torn in sorted(tears(self.durable[n], self.visible[n]))]
            for n in unsynced
        ]
        choices: list[list[Any]] = [[None, change] for change in self.pending_names]
        sizes = [len(options) for options in (*choices, *contents)]
        total = prod(sizes)
        for number in rng.sample(range(total), min(most, total)):
            chosen = _nth_of_product(number, [*choices, *contents])
            names = [change for change in chosen[: len(choices)] if change is not None]
            yield self.tree(names, dict(chosen[len(choices) :]))

    def random_state(self, rng: Random) -> Tree:
        """A possible state after power loss: any lost names, and any lost or torn contents."""
        names = [change for change in self.pending_names if rng.random() < 0.5]
        torn = {
            n: random_tear(rng, self.durable[n], x)
            for n, x in self.visible.items()
            if isinstance(x, bytes) and x != self.durable[n]
        }
        return self.tree(names, torn)

    def tree(self, names, torn: Mapping[int, bytes]) -> Tree:
        nodes = {**self.durable, **torn}
        for where, change in names:
            nodes[where] = applied(nodes[where], change)
        return dict(walk(nodes, 0, ""))


def _nth_of_product(number: int, options: list[list[Any]]) -> list[Any]:
    """One element of the Cartesian product, by its number."""
    chosen = []
    for values in options:
        number, index = divmod(number, len(values))
        chosen.append(values[index])
    return chosen


def applied(entries: Mapping[str, int], change: Mapping[str, int | None]) -> dict[str, int]:
    return {name: n for name, n in {**entries, **change}.items() if n is not None}


def tears(old: bytes, new: bytes) -> set[bytes]:
    """Possible contents of an unsynced file; files here are written once, from empty."""
    cuts = {new[:at] for at in range(0, len(new), SECTOR)}
    holes = {
        (new[:at] + bytes(SECTOR) + new[at + SECTOR :])[: len(new)]
        for at in range(0, len(new), SECTOR)
    }
    return {old, new, bytes(len(new))} | cuts | holes


def common_prefix(old: bytes, new: bytes) -> bytes:
    """The content of a file before bytes were appended or cut off; b"" after another change."""
    shorter, longer = sorted((old, new), key=len)
    return shorter if longer.startswith(shorter) else b""


def random_tear(rng: Random, old: bytes, new: bytes) -> bytes:
    """A possible content of a file that was changed from `old` to `new` and not synced.

    The file has one of its two lengths or one between. Blocks of 512 or 4,096 bytes behind the
    common beginning are written or zero.
    """
    if rng.random() < 0.2:
        return rng.choice((old, new))
    start, block = len(common_prefix(old, new)), rng.choice((SECTOR, 8 * SECTOR))
    lengths = (len(old), len(new), rng.randint(*sorted((len(old), len(new)))))
    content = bytearray(max(old, new, key=len)[: rng.choice(lengths)])
    for at in range(start, len(content), block):
        if rng.random() < 0.3:
            content[at : at + block] = bytes(len(content[at : at + block]))
    return bytes(content)


def walk(nodes, number: int, path: str) -> Iterator[tuple[str, bytes | None]]:
    for name, inner in nodes[number].items():
        content = nodes[inner]
        yield path + name, content if isinstance(content, bytes) else None
        if not isinstance(content, bytes):
            yield from walk(nodes, inner, f"{path}{name}/")


def tree_of(root: Path) -> Tree:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def write_tree(tree: Tree, root: Path) -> None:
    root.mkdir()
    for path, content in sorted(tree.items()):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
