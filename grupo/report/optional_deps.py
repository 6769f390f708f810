"""What is installed only where it is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from grupo.core.errors import Refused


@contextmanager
def needed(tool: str, extra: str) -> Iterator[None]:
    """Refuse what is not installed, with the extra of grupo that installs it."""
    try:
        yield
    except ImportError as error:
        raise Refused(
            f'{tool} is not installed. Install it: pip install "grupo[{extra}]".'
        ) from error
