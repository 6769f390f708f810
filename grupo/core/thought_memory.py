"""Memory of thoughts: cells of similar vectors, in which thoughts are inserted, merged, forgotten.

A memory is a fold over notes, the texts that a policy has written so far: it has no other state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from grupo.core.embeddings import Embedding
from grupo.util.rng import derive_key

FORGET = "forget:"  # a note that begins with it removes the thoughts that are the same as its rest


class StoredThought(NamedTuple):
    """A thought in a cell.

    Args:
        text: The thought.
        vector: Its vector, of length 1.
    """

    text: str
    vector: np.ndarray


@dataclass(frozen=True)
class ThoughtMemory:
    """Thoughts in cells by locality-sensitive hashing; each operation returns a new memory.

    The cell of a vector x is argmax [xR, -xR], where R has cells / 2 columns of normal numbers:
    the smaller the angle of two vectors, the likelier they share their cell. Only thoughts of one
    cell are compared. Two thoughts are the same if their cosine is at least `merge_at`.

    Args:
        embed: Computes the vector of a text. A text whose vector is 0 is not stored.
        num_cells: Number of cells; 1, which stores all thoughts together, or an even number.
        cell_size: Largest number of thoughts in a cell; beyond it, the oldest one is forgotten.
        merge_at: Cosine from which the later of two thoughts takes the place of the earlier one.
        cells: The thoughts of each cell that has some, oldest first.
        merged: Number of thoughts whose place a later one has taken.
        forgotten: Number of thoughts that were forgotten, by a note or by the size of their cell.
    """

    embed: Embedding
    num_cells: int = 8
    cell_size: int = 64
    merge_at: float = 0.9
    cells: Mapping[int, tuple[StoredThought, ...]] = field(default_factory=dict)
    merged: int = 0
    forgotten: int = 0

    def after(self, notes: Iterable[str]) -> "ThoughtMemory":
        """The memory after further notes: each is inserted, or names a thought to forget."""
        return reduce(ThoughtMemory._after_note, notes, self)

    def insert(self, text: str) -> "ThoughtMemory":
        """The memory with one thought more, the newest one of its cell."""
        vector = self._vector(text)
        if vector is None:
            return self
        cell, num_same, others = self._others(vector)
        thoughts = (*others, StoredThought(text, vector))
        kept = thoughts[-self.cell_size :]
        forgotten = self.forgotten + len(thoughts) - len(kept)
        cells = {**self.cells, cell: kept}
        return replace(self, cells=cells, merged=self.merged + num_same, forgotten=forgotten)

    def forget(self, text: str) -> "ThoughtMemory":
        """The memory without the thoughts that are the same as a text."""
        vector = self._vector(text)
        if vector is None:
            return self
        cell, num_same, others = self._others(vector)
        cells = {**self.cells, cell: others}
        return replace(self, cells=cells, forgotten=self.forgotten + num_same)

    def recall(self, text: str, count: int, probes: int = 1) -> list[str]:
        """The thoughts most similar to a text, best first; of equal ones the later is first.

        Thoughts whose cosine with the text is 0 or less are left out.

        Args:
            text: The text.
            count: Largest number of thoughts.
            probes: Number of cells that are read: the cell of the text, and the next likeliest.
        """
        vector = self._vector(text)
        if vector is None:
            return []
        cells = self._order(vector)[:probes]
        found = [thought for cell in cells for thought in reversed(self.cells.get(cell, ()))]
        similar = [(float(thought.vector @ vector), thought.text) for thought in found]
        ranked = sorted(similar, key=lambda pair: -pair[0])  # stable: the later one stays first
        return [text for cosine, text in ranked if cosine > 0][:count]

    def __len__(self) -> int:
        return sum(map(len, self.cells.values()))

    def _after_note(self, note: str) -> "ThoughtMemory":
        if note.lower().startswith(FORGET):
            return self.forget(note[len(FORGET) :])
        return self.insert(note)

    def _others(self, vector: np.ndarray) -> tuple[int, int, tuple[StoredThought, ...]]:
        """The cell of a vector, the number of its thoughts that are the same, and all others."""
        cell = self._order(vector)[0]
        stored = self.cells.get(cell, ())
        others = tuple(x for x in stored if float(x.vector @ vector) < self.merge_at)
        return cell, len(stored) - len(others), others

    def _order(self, vector: np.ndarray) -> list[int]:
        """All cells, the one of the vector first."""
        if self.num_cells == 1:
            return [0]
        return cell_order(vector, _planes(len(vector), self.num_cells // 2))

    def _vector(self, text: str) -> np.ndarray | None:
        """The vector of a text with length 1; None if it is 0."""
        vector = np.asarray(self.embed(text), dtype=np.float64)
        length = float(np.linalg.norm(vector))
        return vector / length if length else None


def cell_order(vector: np.ndarray, planes: np.ndarray) -> list[int]:
    """All cells by [xR, -xR] descending: the first one is the cell of x.

    Args:
        vector: x, of shape (D,).
        planes: R, of shape (D, cells / 2).

    >>> cell_order(np.array([3.0, 1.0]), np.array([[1.0, 0.0], [0.0, 2.0]]))  # 3, 2, -3, -2
    [0, 1, 3, 2]
    """
    projected = vector @ planes
    return np.argsort(-np.concatenate([projected, -projected]), kind="stable").tolist()


@lru_cache(maxsize=8)
def _planes(dimensions: int, columns: int) -> np.ndarray:
    """The matrix R: the same normal numbers for the same shape, in every process."""
    key = derive_key(0, "planes", dimensions, columns)
    return np.random.default_rng(key).standard_normal((dimensions, columns))
