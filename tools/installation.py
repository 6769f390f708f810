"""Writes the table of extras into docs/installation.md.

python tools/installation.py docs/installation.md
"""

import re
import sys
from pathlib import Path

from grupo.util.requirements import EXTRAS

TABLE = re.compile(r"(?<=<!-- extras -->\n).*?(?=<!-- end of extras -->)", re.DOTALL)


def updated(page: str) -> str:
    """The page with the extras as they are."""
    rows = [f"| `{name}` | {purpose} |" for name, purpose in EXTRAS.items()]
    return TABLE.sub("\n".join(["| extra | for |", "|---|---|", *rows]) + "\n", page)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
