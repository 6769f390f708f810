"""A search tool: the documents of a file whose words fit a query best, by BM25."""

from functools import lru_cache
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.util.bm25 import Bm25
from grupo.util.errors import ConfigError
from grupo.util.json_text import read_limited
from grupo.util.limits import DOCUMENTS_SIZE
from grupo.util.loader_errors import loader_errors
from grupo.util.user_paths import parse_path

__all__ = ["KeywordSearch"]


@component
class KeywordSearch:
    """Search the documents and read the best ones, one a line."""

    # The docstring is the tool's description in the policy's prompt. `path` is a text file with a
    # document on each line, `top_k` the number of documents that are returned.
    path: str
    top_k: PositiveInt = 3

    def check(self) -> None:
        """Raises `ConfigError` if `path` is no file with a document."""
        _index(self.path)

    def __call__(self, query: str) -> str:
        index = _index(self.path)
        best = index.search(query, self.top_k)
        return "\n".join(index.documents[i] for i in best)


def _index(path: str) -> Bm25:
    file = parse_path(path)
    if not file.is_file():
        raise ConfigError(f"path: {path!r} is not a file. Allowed: a text file of documents.")
    return _read_index(str(file.absolute()), file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_index(path: str, changed_at: int) -> Bm25:
    with loader_errors(f"path: {path!r}"):
        lines = read_limited(Path(path), DOCUMENTS_SIZE).splitlines()
    documents = [line for line in lines if line.strip()]
    if not documents:
        raise ConfigError(f"path: {path!r} has no documents. Allowed: one on each line.")
    return Bm25(documents)
