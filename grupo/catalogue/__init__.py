"""The catalogue: all methods of the library, and how each differs from the default method."""

from grupo.catalogue.entries import Entry, methods, tagged_entries
from grupo.catalogue.fidelity import fidelity_page
from grupo.catalogue.pages import index_page, method_page, method_pages, methods_table
from grupo.catalogue.parse import find_paper, parse_method
from grupo.catalogue.search import (
    find_entries,
    find_entry,
    is_known,
    search_entries,
    search_topic,
    topics_table,
)

__all__ = [
    "Entry",
    "fidelity_page",
    "find_entries",
    "find_entry",
    "find_paper",
    "index_page",
    "is_known",
    "method_page",
    "method_pages",
    "methods",
    "methods_table",
    "parse_method",
    "search_entries",
    "search_topic",
    "tagged_entries",
    "topics_table",
]
