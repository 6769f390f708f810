"""The command line: `grupo VERB …`; without a verb it trains."""

from grupo.cli.main import main

__all__ = ["main"]
