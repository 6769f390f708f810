"""Translates scripts and configurations of TRL, verl, OpenRLHF and prime-rl into recipe files."""

from grupo.config.migrate.recipe_text import Migration, migrate_file

__all__ = ["Migration", "migrate_file"]
