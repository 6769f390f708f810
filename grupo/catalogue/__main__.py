"""Write the documentation pages of all methods: `python -m grupo.catalogue docs/methods`."""

import sys
from pathlib import Path

from grupo.catalogue import method_pages

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, text in method_pages().items():
    (folder / name).write_text(text, encoding="utf-8")
