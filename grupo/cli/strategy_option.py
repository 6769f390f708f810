"""Turn strategies of the command line: `single`, `Vote(16)` or `file.py:name`."""

from collections.abc import Sequence

from grupo.config.parse_value import parse_value
from grupo.core.interfaces import TurnStrategy, single_response
from grupo.util.errors import ConfigError

SINGLE = "single"  # short for `single_response`


def parse_strategy(text: str) -> TurnStrategy:
    """The turn strategy that a text spells.

    >>> parse_strategy("Vote(16)"), parse_strategy("single") is single_response
    (Vote(n=16), True)
    """
    if text.strip() == SINGLE:
        return single_response
    return parse_value(text, TurnStrategy, "strategy")


def parse_strategies(texts: Sequence[str]) -> dict[str, TurnStrategy]:
    """The turn strategies by the texts that spell them."""
    strategies = {text.strip(): parse_strategy(text) for text in texts}
    if len(strategies) < len(texts):
        raise ConfigError("strategy: one is given twice. Leave one of the two out.")
    return strategies
