"""Descriptions of Debian packages and their summaries, from the files of dpkg or apt.

python recipes/real/debian_packages.py [FILE]   # number of tasks, and the first three

`/var/lib/dpkg/status` has the packages that are installed; `apt-cache dumpavail > FILE` writes
those of all sources of a machine, where apt has their long descriptions.
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, NonNegativeInt, PositiveInt
from grupo.core.types import Task
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file

STATUS = "/var/lib/dpkg/status"
MIN_WORDS, MAX_WORDS, MIN_SUMMARY = 12, 60, 3
STOPWORDS = (
    *("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it"),
    *("its", "of", "on", "or", "that", "the", "this", "to", "with"),
)
FIELD = re.compile(r"^([A-Za-z-]+): (.*(?:\n .*)*)", re.MULTILINE)


@component
class PackageTasks:
    """A task for each package: its description is the prompt, its summary the reference answer.

    The order is that of a hash of the names, and of packages with one source, only the first is
    taken, so that texts of one source are never trained on and held out. The column `description`
    has the text, and `completion` its keywords, separated by semicolons.

    Args:
        instruction: Text before the description in the prompt.
        first: Index of the first package.
        count: Largest number of packages.
        file: File of paragraphs with the fields `Package` and `Description`.
    """

    instruction: NonEmptyString
    first: NonNegativeInt
    count: PositiveInt
    file: NonEmptyString = STATUS

    def load(self) -> Sequence[Task]:
        tasks = [self._task(*row) for row in package_rows(read_packages(self.file))]
        return tasks[self.first : self.first + self.count]

    def _task(self, name: str, description: str, summary: str) -> Task:
        prompt = ({"role": "user", "content": self.instruction + description},)
        columns = {"description": description, "completion": keywords(description, summary)}
        return Task(name, prompt, summary, columns=columns)


def read_packages(file: str) -> str:
    """The text of a file of packages; raises `ConfigError` if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"tasks.file: {file!r}: {error}. Allowed: {STATUS} of a Debian system, or the output"
            " of apt-cache dumpavail."
        ) from error


def package_rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, description and summary of one package of each source, in the order of a hash.

    Packages without keywords are left out.

    Args:
        text: Paragraphs of dpkg or apt.
    """
    paragraphs = [dict(FIELD.findall(paragraph)) for paragraph in text.split("\n\n")]
    by_name = {fields["Package"]: fields for fields in paragraphs if "Package" in fields}
    sources = set[str]()
    for name in sorted(by_name, key=lambda name: hashlib.sha256(name.encode()).digest()):
        source = by_name[name].get("Source", name).partition(" ")[0]
        description, summary = _texts(by_name[name])
        is_useful = len(words(summary)) >= MIN_SUMMARY and keywords(description, summary)
        if is_useful and source not in sources:
            sources.add(source)
            yield name, description, summary


def _texts(fields: Mapping[str, str]) -> tuple[str, str]:
    """The first paragraph of a description, "" if it is too short, and the summary."""
    whole = fields.get("Description") or fields.get("Description-en") or ""
    summary, _, rest = whole.partition("\n")
    paragraph = re.split(r"^ \.$", rest, maxsplit=1, flags=re.MULTILINE)[0].split()
    is_long = len(paragraph) >= MIN_WORDS
    return " ".join(paragraph[:MAX_WORDS]) if is_long else "", summary.strip()


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"[\w+-]+", text.lower())


def keywords(description: str, summary: str) -> str:
    """The words of a summary that the description has, in the summary's order, without stopwords.

    >>> keywords("This is a fast compiler for the C language.", "C compiler, small and fast")
    'c; compiler; fast'
    """
    known = set(words(description)) - {*STOPWORDS}
    return "; ".join(dict.fromkeys(word for word in words(summary) if word in known))


def main(file: str = STATUS) -> None:
    """Print the number of tasks and the first three."""
    tasks = PackageTasks("Summarize: ", 0, 1_000_000, file).load()
    print(f"{len(tasks)} packages of different sources")
    for task in tasks[:3]:
        print(f"\n{task.columns['description']}\n-> {task.reference_answer}")
        print(f"keywords: {task.columns['completion']}")


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
