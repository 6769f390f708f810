"""Every assembled method against an independent implementation of its paper's update."""

import pkgutil
from importlib import import_module

import pytest

import tests.reference.assembled_numpy as references
from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from tests.reference.assembled.comparison import assert_equals_reference
from tests.reference.assembled_numpy.update import REFERENCES

for module in pkgutil.iter_modules(references.__path__):
    import_module(f"{references.__name__}.{module.name}")


EXAMPLES = {entry.key: entry.example for entry in methods()}


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_the_update_equals_the_reference(name):
    reference = REFERENCES[name]
    assert_equals_reference(parse_method(reference.code or EXAMPLES[name]), reference)
