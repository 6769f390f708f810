"""The anchors of a documentation page."""

import re
from pathlib import Path

from markdown.extensions.toc import slugify, unique


def anchors(page: Path) -> set[str]:
    """The anchors that the site gives to the headings of a page, and those that it defines."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    known: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        unique(slugify(title.replace("`", ""), "-"), known)
    return known | {*re.findall(r'id="([^"]+)"', text)}
