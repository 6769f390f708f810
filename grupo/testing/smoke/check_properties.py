"""Which laws a method obeys."""

from grupo.method import Method
from grupo.testing.properties import LAWS, Law


def check(method: Method) -> list[tuple[str, str, str]]:
    """A report card: of each law its name, its claim, and "" or what was violated."""
    return [(law.__name__, claim(law), _violated(law, method)) for law in LAWS]


def claim(law: Law) -> str:
    """The first line of a law's docstring."""
    return (law.__doc__ or "").partition("\n")[0]


def _violated(law: Law, method: Method) -> str:
    # A report card goes on: whatever a user's piece raises is what the law has to say of it.
    try:
        law(method)
    except AssertionError as error:
        return str(error)
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    return ""
