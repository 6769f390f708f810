"""GRUPO_HOME as the user has set it, before the tests set their own one."""

import os

USER_HOME = os.environ.get("GRUPO_HOME", "")
