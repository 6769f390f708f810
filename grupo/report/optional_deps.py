"""What is installed only where it is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from grupo.core.errors import ConfigError


@contextmanager
def optional_dependency(tool: str, extra: str) -> Iterator[None]:
    """Refuse what is not installed, with the extra of grupo that installs it."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f'{tool} is not installed. Install it: pip install "grupo[{extra}]".'
        ) from error
