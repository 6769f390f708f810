"""The measurement of a comparison of methods: its own table."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.real_runs.commands import as_typed, execute
from benchmarks.real_runs.section import TABLE, Result


@dataclass(frozen=True)
class Compared:
    """`grupo compare`.

    Args:
        arguments: Its arguments, without the folder.
    """

    arguments: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        return (as_typed(("compare", *self.arguments, "--out", "COMPARED")),)

    def measure(self, folder: Path) -> Result:
        out = folder / "compared"
        execute(["compare", *self.arguments, "--out", str(out)], folder / "compare.log")
        return {TABLE: (out / "table.md").read_text(encoding="utf-8")}
