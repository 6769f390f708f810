"""The references of all methods, with the methods that they are compared with."""

import pkgutil
from importlib import import_module

import tests.reference.assembled_numpy as references
from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.method import Method
from tests.reference.assembled_numpy.update import REFERENCES

for module in pkgutil.iter_modules(references.__path__):
    import_module(f"{references.__name__}.{module.name}")

ENTRIES = {entry.key: entry for entry in methods()}


def compared_method(name: str) -> Method:
    """The method that a reference is compared with."""
    return parse_method(REFERENCES[name].code or ENTRIES[name].example)
