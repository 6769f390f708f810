"""Which laws a method obeys."""

from grupo.method import Method
from grupo.testing.properties import PROPERTIES, MethodProperty


def check_properties(method: Method) -> list[tuple[str, str, str]]:
    """A report card: of each law its name, its claim, and "" or what was violated."""
    return [(law.__name__, property_claim(law), _violation(law, method)) for law in PROPERTIES]


def property_claim(method_property: MethodProperty) -> str:
    """The first line of a law's docstring."""
    return (method_property.__doc__ or "").partition("\n")[0]


def _violation(method_property: MethodProperty, method: Method) -> str:
    # A report card goes on: whatever a user's piece raises is what the law has to say of it.
    try:
        method_property(method)
    except AssertionError as error:
        return str(error)
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    return ""
