"""Imports of optional dependencies."""

from collections.abc import Iterator
from contextlib import contextmanager

from grupo.core.errors import ConfigError


@contextmanager
def optional_dependency(tool: str, extra: str) -> Iterator[None]:
    """Turn an `ImportError` into a `ConfigError` that names the extra to install.

    Args:
        tool: the package as users know it, for the message.
        extra: the extra of grupo that installs it.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f'{tool} is not installed. Install it: pip install "grupo[{extra}]".'
        ) from error
