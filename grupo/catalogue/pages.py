"""What the catalogue looks like: a table in a terminal, and a page of documentation per method."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from rich.table import Table

from grupo.catalogue.entries import Entry, methods
from grupo.core.component import to_code
from grupo.method import Method

GENERATED_NOTICE = (
    "<!-- written by `python -m grupo.catalogue docs/methods`: change the method's file -->"
)


def methods_table(entries: Iterable[Entry]) -> Table:
    """The entries and what each changes against the default method, in 100 columns."""
    made = Table("method", "paper", "what it changes", show_lines=True)
    for entry in entries:
        changed = "\n".join(f"[bold]{slot}[/] {_escaped(code)}" for slot, code in entry.changes)
        made.add_row(
            f"[bold]{entry.key}[/]\n{entry.name}",
            f"{entry.authors}\n{entry.year}, {entry.arxiv or entry.venue}",
            changed or "nothing: it is the default",
        )
    return made


def _escaped(code: str) -> str:
    """Code as rich prints it: a bracket is not markup."""
    return code.replace("[", r"\[")


def method_pages() -> dict[str, str]:
    """Every page of the documentation of methods, by the name of its file."""
    entries = methods()
    return {"README.md": index_page(entries), **{f"{e.key}.md": method_page(e) for e in entries}}


def method_page(entry: Entry) -> str:
    """The page of one method, in Markdown."""
    default = Method()
    changed = [(slot, to_code(getattr(default, slot)), code) for slot, code in entry.changes]
    parts = [
        GENERATED_NOTICE,
        f"# {entry.name}",
        f"{entry.claim[0].upper()}{entry.claim[1:]}.",
        f"{entry.authors}, {entry.year}: {_arxiv_link(entry, entry.title)}.",
        *_when_section(entry),
        "## What it computes",
        f"```text\n{entry.formula}\n```",
        "## What it changes",
        _markdown_table(
            ("slot", "default", entry.name), [[a, _code(b), _code(c)] for a, b, c in changed]
        ),
        "## Arguments",
        _markdown_table(("name", "type", "default"), _argument_rows(entry)),
        "## Use",
        f"On a command line `--method '{entry.example}'`, in Python",
        f"```python\n{_python_example(entry)}\n```",
        "## How it is checked",
        f"{', '.join(entry.checked).capitalize()}.{_catalogue_sentence(entry)}",
        *_other_libraries_section(entry),
    ]
    return "\n\n".join(parts) + "\n"


def index_page(entries: Sequence[Entry]) -> str:
    """The front page: what each method changes against the default, slot by slot."""
    default = Method()
    slots = [[f.name, _code(to_code(getattr(default, f.name)))] for f in fields(default)]
    parts = [
        GENERATED_NOTICE,
        "# Methods",
        f"{len(entries)} methods, each a choice of what fills these slots. Unless told otherwise:",
        _markdown_table(("slot", "default"), slots),
        "`grupo methods NUMBER` finds a method by its paper's arXiv number.",
        "## By what changes",
        _markdown_table(("slot", "methods"), _by_slot(entries)),
        "## All of them",
        _markdown_table(("method", "paper", "what it does"), map(_index_row, entries)),
    ]
    return "\n\n".join(parts) + "\n"


def _index_row(entry: Entry) -> list[str]:
    return [_page_link(entry), _arxiv_link(entry, entry.arxiv or entry.venue), entry.claim]


def _page_link(entry: Entry) -> str:
    return f"[{entry.name}]({entry.key}.md)"


def _by_slot(entries: Sequence[Entry]) -> list[list[str]]:
    """Of each slot those who change it; another number of rollouts is no other sampler."""
    changing = {
        f.name: [e for e in entries if _changes_slot(f.name, dict(e.changes))]
        for f in fields(Method)
    }
    return [[slot, ", ".join(map(_page_link, some))] for slot, some in changing.items() if some]


def _changes_slot(slot: str, changes: Mapping[str, str]) -> bool:
    return slot in changes and not changes[slot].startswith("GroupSampler(")


def _arxiv_link(entry: Entry, text: str) -> str:
    return f"[{text}](https://arxiv.org/abs/{entry.arxiv})" if entry.arxiv else text


def _when_section(entry: Entry) -> list[str]:
    return ["## When", entry.use] if entry.use else []


def _other_libraries_section(entry: Entry) -> list[str]:
    """How others spell it."""
    rows = [[name, said] for name, said in (("TRL", entry.trl), ("verl", entry.verl)) if said]
    return ["## Elsewhere", _markdown_table(("library", "options"), rows)] if rows else []


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _argument_rows(entry: Entry) -> list[list[str]]:
    return [
        [
            f"`{p.name}`",
            _code(inspect.formatannotation(p.annotation)),
            "required" if p.default is p.empty else _code(to_code(p.default)),
        ]
        for p in inspect.signature(entry.function).parameters.values()
    ]


def _code(text: str) -> str:
    return f"`{text}`".replace("|", r"\|")


def _python_example(entry: Entry) -> str:
    call = entry.example if entry.example.endswith(")") else f"{entry.example}()"
    return f"from grupo.methods.{entry.key} import {entry.key}\n\nmethod = {call}"


def _catalogue_sentence(entry: Entry) -> str:
    return f" Rows of the catalogue: {', '.join(entry.catalogue)}." if entry.catalogue else ""
