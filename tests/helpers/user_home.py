"""GRUPO_HOME as the user has set it, before the tests set their own one."""

import os

# a variable of its own, because the processes of pytest-xdist inherit what the tests have set
USER_HOME = os.environ.setdefault("GRUPO_HOME_OF_USER", os.environ.get("GRUPO_HOME", ""))
