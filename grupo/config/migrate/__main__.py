"""Write docs/migrate.md: `python -m grupo.config.migrate docs/migrate.md`."""

import sys
from pathlib import Path

from grupo.config.migrate.page import migration_page

Path(sys.argv[1]).write_text(migration_page(), encoding="utf-8")
