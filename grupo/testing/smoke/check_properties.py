"""Checks a method for all properties and collects the violations."""

from collections.abc import Sequence

from grupo.method import Method
from grupo.testing.properties import PROPERTIES, MethodProperty
from grupo.util.loader_errors import describe_error


def check_properties(
    method: Method, properties: Sequence[MethodProperty] = PROPERTIES
) -> list[tuple[str, str, str]]:
    """For each property: its name, its claim, and the violation, "" if the property holds."""
    return [(prop.__name__, property_claim(prop), violation(prop, method)) for prop in properties]


def property_claim(method_property: MethodProperty) -> str:
    """The first line of a property's docstring."""
    return (method_property.__doc__ or "").partition("\n")[0]


def violation(method_property: MethodProperty, method: Method) -> str:
    """The message of a property that does not hold or that raises, "" if it holds."""
    # the other properties are still checked if a user's component raises
    try:
        method_property(method)
    except AssertionError as error:
        return str(error)
    except Exception as error:
        return f"it raised {describe_error(error)}"
    return ""
