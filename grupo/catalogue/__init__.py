"""The catalogue: all methods of the library, and how each differs from the default method."""

from grupo.catalogue.entries import Entry, find_entry, methods, search_entries, tagged_entries
from grupo.catalogue.fidelity import fidelity_page
from grupo.catalogue.pages import index_page, method_page, method_pages, methods_table
from grupo.catalogue.parse import find_paper, parse_method

__all__ = [
    "Entry",
    "fidelity_page",
    "find_entry",
    "find_paper",
    "index_page",
    "method_page",
    "method_pages",
    "methods",
    "methods_table",
    "parse_method",
    "search_entries",
    "tagged_entries",
]
