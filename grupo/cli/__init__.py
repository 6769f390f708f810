"""The command line: `grupo COMMAND …`; without a command it trains."""

from grupo.cli.main import main

__all__ = ["main"]
