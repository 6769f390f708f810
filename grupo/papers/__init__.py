"""Papers that the library implements: the records `PAPER` of all modules."""

from grupo.papers.find import PaperRecord, find_papers, papers, parse_paper, source_folders
from grupo.papers.table import papers_table, totals

__all__ = [
    "PaperRecord",
    "find_papers",
    "papers",
    "papers_table",
    "parse_paper",
    "source_folders",
    "totals",
]
