"""The methods of the library: found by walking `grupo.methods`, told apart by what they change."""

from grupo.catalogue.entries import Entry, find, methods, search
from grupo.catalogue.pages import docs_page, documents, index_page, table
from grupo.catalogue.parse import parse

__all__ = [
    "Entry",
    "docs_page",
    "documents",
    "find",
    "index_page",
    "methods",
    "parse",
    "search",
    "table",
]
