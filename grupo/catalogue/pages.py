"""Renders the catalogue: a table for the terminal and a documentation page per method."""

import inspect
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rich.table import Table

from grupo.catalogue.entries import Entry, methods
from grupo.catalogue.inert_parts import inert_ratio_sentence, unread_advantage_sentence
from grupo.catalogue.parse import literal_type
from grupo.core.component import to_code
from grupo.core.paper import LEVELS, SOURCE_KINDS, TAGS
from grupo.core.ranges import describe_range
from grupo.core.reward_range import range_as_text
from grupo.method import Method

GENERATED_NOTICE = "<!-- written by `python -m grupo.catalogue docs`: change the method's file -->"


def methods_table(entries: Iterable[Entry]) -> Table:
    """A table of the entries and the slots that each changes, in 100 columns."""
    table = Table("method", "paper", "changes", show_lines=True)
    for entry in entries:
        changed = "\n".join(f"[bold]{slot}[/] {_escaped(code)}" for slot, code in entry.changes)
        facts = "\n".join(f"[dim]{_escaped(fact)}[/]" for fact in _plan_facts(entry))
        table.add_row(
            f"[bold]{entry.key}[/]\n{entry.name}",
            f"{entry.authors}\n{entry.year}, {entry.arxiv or entry.venue}",
            f"{changed or 'none: it is the default'}\n{facts}",
        )
    return table


def _plan_facts(entry: Entry) -> list[str]:
    """The kind of the source, the update plan, and when the gradient is that of GRPO."""
    plan = entry.plan_data()
    count = plan["updates_per_step"]
    updates = f" ({count} update{'s' * (count != 1)} per step)" if count else ""
    source = f"from {entry.source.kind}" if entry.source else "not compared with the paper yet"
    return [
        f"source: {source}",
        f"evidence: {entry.level}",
        f"plan: {plan['code']}{updates}{': ' * bool(entry.plan)}{entry.plan}",
        *_reward_range_sentence(entry),
        *_equality_sentence(entry),
        *_inert_part_sentences(entry),
    ]


def _reward_range_sentence(entry: Entry) -> list[str]:
    bounds = entry.method.requires.reward_range
    return [f"It expects rewards {range_as_text(bounds)}; others are refused"] if bounds else []


def _equality_sentence(entry: Entry) -> list[str]:
    return [
        f"The gradient equals that of GRPO, with this KL divergence and mean over tokens, when"
        f" {condition}"
        for condition in [entry.equals_grpo_when]
        if condition
    ]


def _inert_part_sentences(entry: Entry) -> list[str]:
    method = entry.method
    return [*filter(None, [inert_ratio_sentence(method), unread_advantage_sentence(method)])]


def _escaped(code: str) -> str:
    """Code in which rich does not read brackets as markup."""
    return code.replace("[", r"\[")


def method_pages() -> dict[str, str]:
    """Documentation pages of all methods, by file name."""
    entries = methods()
    return {"README.md": index_page(entries), **{f"{e.key}.md": method_page(e) for e in entries}}


def method_page(entry: Entry) -> str:
    """The page of one method, in Markdown."""
    default = Method()
    changed = [(slot, to_code(getattr(default, slot)), code) for slot, code in entry.changes]
    sections = [
        GENERATED_NOTICE,
        f"# {entry.name}",
        f"{entry.claim[0].upper()}{entry.claim[1:]}.",
        f"{entry.authors}, {entry.year}: {_arxiv_link(entry, entry.title)}.",
        f"Tags: {', '.join(map(_tag_link, entry.tags))}.",
        *_when_section(entry),
        "## Formula",
        f"```text\n{entry.formula}\n```",
        *_source_section(entry),
        "## Changes",
        markdown_table(
            ("slot", "default", entry.name),
            [[slot, _code(old), _code(new)] for slot, old, new in changed],
        ),
        *_arguments_section(entry),
        "## Use",
        f"On the command line `--method '{entry.example}'`, in Python",
        f"```python\n{_python_example(entry)}\n```",
        "## Checks",
        f"{', '.join(entry.checked).capitalize()}.{_catalogue_sentence(entry)}",
        _evidence_sentence(entry),
        *_other_libraries_section(entry),
    ]
    return "\n\n".join(sections) + "\n"


def index_page(entries: Sequence[Entry]) -> str:
    """The index page: the default method, and the methods by changed slot and by tag."""
    default = Method()
    slots = [[f.name, _code(to_code(getattr(default, f.name)))] for f in fields(default)]
    sections = [
        GENERATED_NOTICE,
        "# Methods",
        f"{len(entries)} methods, each a choice of components for these slots. The defaults are:",
        markdown_table(("slot", "default"), slots),
        "`grupo methods NUMBER` finds a method by its paper's arXiv number.",
        "## By slot",
        markdown_table(("slot", "methods"), _by_slot(entries)),
        "## By tag",
        "`grupo methods list --tag NAME` lists the methods of a tag; with several, those of all.",
        markdown_table(("tag", "meaning", "methods"), _by_tag(entries)),
        "## All methods",
        markdown_table(("method", "paper", "idea", "evidence"), map(_index_row, entries)),
    ]
    return "\n\n".join(sections) + "\n"


def _index_row(entry: Entry) -> list[str]:
    paper = _arxiv_link(entry, entry.arxiv or entry.venue)
    return [_page_link(entry), paper, entry.claim, entry.level]


def _page_link(entry: Entry) -> str:
    return f"[{entry.name}]({entry.key}.md)"


def _by_slot(entries: Sequence[Entry]) -> list[list[str]]:
    """For each slot, the methods that change it; another group size is no other sampler."""
    changing = {
        f.name: [e for e in entries if _changes_slot(f.name, dict(e.changes))]
        for f in fields(Method)
    }
    return [
        [slot, ", ".join(map(_page_link, changed_by))]
        for slot, changed_by in changing.items()
        if changed_by
    ]


def _by_tag(entries: Sequence[Entry]) -> list[list[str]]:
    """For each tag, its meaning and the methods that have it."""
    return [
        [_tag_anchor(tag), meaning, ", ".join(_page_link(e) for e in entries if tag in e.tags)]
        for tag, meaning in TAGS.items()
    ]


def _tag_anchor(tag: str) -> str:
    """The tag, as the target of the links of the methods' pages."""
    return f'<a id="tag-{tag}"></a>{tag}'


def _tag_link(tag: str) -> str:
    return f"[{tag}](README.md#tag-{tag})"


def _changes_slot(slot: str, changes: Mapping[str, str]) -> bool:
    return slot in changes and not changes[slot].startswith("GroupSampler(")


def _arxiv_link(entry: Entry, text: str) -> str:
    return f"[{text}](https://arxiv.org/abs/{entry.arxiv})" if entry.arxiv else text


def _when_section(entry: Entry) -> list[str]:
    return ["## When to use it", entry.use] if entry.use else []


def _source_section(entry: Entry) -> list[str]:
    """Where the formula and the update plan come from, and what differs from the paper."""
    if entry.source is None:
        return ["## Source", "This file has not been compared with the paper yet."]
    warning = "**Not the paper itself**: " * (entry.source.kind not in ("code", "paper"))
    facts = [
        f"{warning}{SOURCE_KINDS[entry.source.kind]} ({entry.source.place})",
        f"Update plan: {entry.plan}" * bool(entry.plan),
        *_reward_range_sentence(entry),
        *_equality_sentence(entry),
        *_inert_part_sentences(entry),
        *(f"Missing: {text}" for text in entry.missing),
        *(f"Deviation: {text}" for text in entry.deviations),
        f"Compared: {entry.audit}" * bool(entry.audit),
    ]
    return ["## Source", "\n".join(f"* {fact.rstrip('.')}." for fact in facts if fact)]


def _other_libraries_section(entry: Entry) -> list[str]:
    """The options of other libraries."""
    libraries = (("TRL", entry.trl), ("verl", entry.verl))
    rows = [[library, options] for library, options in libraries if options]
    return ["## Other libraries", markdown_table(("library", "options"), rows)] if rows else []


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _arguments_section(entry: Entry) -> list[str]:
    header = ("name", "type", "default", "meaning")
    rows = _argument_rows(entry)
    return ["## Arguments", markdown_table(header, rows)] if rows else []


def _argument_rows(entry: Entry) -> list[list[str]]:
    meanings = entry.argument_meanings
    return [
        [
            f"`{p.name}`",
            _describe_argument(p.annotation),
            "required" if p.default is p.empty else _code(to_code(p.default)),
            _cell(meanings.get(p.name, "")),
        ]
        for p in inspect.signature(entry.function, eval_str=True).parameters.values()
    ]


def _type_name(hint: Any) -> str:
    """The name of a class, or the code of another type."""
    is_class = isinstance(hint, type) and not typing.get_args(hint)
    return hint.__name__ if is_class else inspect.formatannotation(hint)


def _describe_argument(annotation: Any) -> str:
    """The type of an argument as code, and its range in words."""
    hint = literal_type(annotation)
    members = typing.get_args(hint) if typing.get_origin(hint) is typing.Union else (hint,)
    code = " or ".join(_code(_type_name(member)) for member in members)
    return ", ".join(filter(None, (code, describe_range(annotation))))


def _code(text: str) -> str:
    return _cell(f"`{text}`")


def _cell(text: str) -> str:
    """Text in which Markdown does not read a bar as the end of the cell."""
    return text.replace("|", r"\|")


def _python_example(entry: Entry) -> str:
    call = entry.example if entry.example.endswith(")") else f"{entry.example}()"
    return f"from grupo.methods.{entry.key} import {entry.key}\n\nmethod = {call}"


def _catalogue_sentence(entry: Entry) -> str:
    return f" Rows of the catalogue: {', '.join(entry.catalogue)}." if entry.catalogue else ""


def _evidence_sentence(entry: Entry) -> str:
    """The level of the evidence, its meaning, and the places of the paper's claim."""
    places = ", ".join(map(_place_link, entry.shown))
    return f"Evidence: **{entry.level}** ({LEVELS[entry.level]}){': ' * bool(places)}{places}."


def _place_link(place: str) -> str:
    """A section of a page as a link; a test is not on the site."""
    page, _, anchor = place.removeprefix("docs/").partition("#")
    return f"[{page}](../{page}#{anchor})" if anchor else f"`{place}`"
