r"""Texts of mathematical answers: delimiters, spelling variants, and splits outside brackets."""

import re

GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma"
    "|tau|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
# spelling -> spelling, one character each; other characters outside ASCII stay as they are
CHARACTERS = str.maketrans(
    {
        "−": "-",  # noqa: RUF001
        "–": "-",  # noqa: RUF001
        "×": r"\times ",  # noqa: RUF001
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "÷": r"\div ",
        "√": r"\sqrt ",
        "π": r"\pi ",
        "∞": r"\infty ",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "±": r"\pm ",
        "∪": r"\cup ",  # noqa: RUF001
        "°": r"^\circ ",
        "²": "^2",
        "³": "^3",
        "\u00a0": " ",
        "\u202f": " ",
    }
)
REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big|displaystyle|limits)(?![A-Za-z])\.?", ""),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\!", ""),
        (r"\\(?:quad|qquad)(?![A-Za-z])|(?<!\\)\\[ ,;:]|~", " "),
        (r"\\(?:leqslant|leq|le)(?![A-Za-z])", "<="),
        (r"\\(?:geqslant|geq|ge)(?![A-Za-z])", ">="),
        (r"\\(?:neq|ne)(?![A-Za-z])", "!="),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\in(?![A-Za-z])", "="),  # x in a set, as x = the set
        (r"\\lvert|\\rvert|\\vert(?![A-Za-z])", "|"),
        (r"\\lbrace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\(?:mathrm|mathbf|mathit|textbf|textit|textrm|textnormal|mbox|rm|bf)\s*\{", r"\\text{"),
        # text of one symbol or number; other letters after a number are units
        (r"\\text\{\s*([ei]|[+-]?\d[\d.,/]*)\s*\}", r"\1"),
        (r"(?<![\d)}])(?<![\d)}] )\\text\{\s*(\(?[A-Za-z]\)?)\s*\}", r"\1"),
        (r"(\d)\{,\}(?=\d)", r"\1,"),
        (r"(?<!\d)(\d{1,3})((?: \d{3})++)(?![\d ]*\d)", lambda m: m[1] + m[2].replace(" ", ",")),
        (r"_\s*(\d+|[A-Za-z])", r"_{\1}"),
        (r"==", "="),
    )
)
# what may enclose an answer; the inside must not end the enclosure before its end
ENCLOSURES = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\$\$([^$]*)\$\$",
        r"\$([^$]*)\$",
        r"\\\(((?:(?!\\[()]).)*)\\\)",
        r"\\\[((?:(?!\\[\[\]]).)*)\\\]",
        r"\*\*([^*]*)\*\*",
        r"`([^`]*)`",
    )
)
BOXED = re.compile(r"\\f?box(?:ed)?\s*(?=\{)")
OPENING, CLOSING = "([{", ")]}"
MAX_ENCLOSURES = 20  # around one answer; without a limit, a row of many would take quadratic time


def normalize(text: str) -> str:
    r"""The text in one spelling of its commands and signs.

    >>> normalize(r"\dfrac{1}{2} \leq x")
    '\\frac{1}{2} <= x'
    """
    text = strip_delimiters(text.translate(CHARACTERS))
    for pattern, replacement in REPLACEMENTS:
        # single spaces: patterns with several optional spaces stay fast
        text = pattern.sub(replacement, " ".join(text.split()))
    return " ".join(text.split())


def strip_delimiters(text: str) -> str:
    r"""The text without what encloses all of it: $…$, \(…\), \boxed{…}, and a period at its end.

    >>> strip_delimiters(r"$\boxed{4}$."), strip_delimiters("$3$ or $4$")
    ('4', '$3$ or $4$')
    """
    for _ in range(MAX_ENCLOSURES):
        stripped = _strip_once(text.strip())
        if stripped == text:
            break
        text = stripped
    return text


def _strip_once(text: str) -> str:
    if re.search(r"[^.]\.$", text):
        return text[:-1]
    for pattern in ENCLOSURES:
        match = pattern.fullmatch(text)
        if match:
            return match[1]
    box = BOXED.match(text)
    if box and closing_bracket(text, box.end()) == len(text) - 1:
        return text[box.end() + 1 : -1]
    return text


def closing_bracket(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`, or -1; kinds of brackets may differ."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] in OPENING) - (text[index] in CLOSING)
        if depth == 0:
            return index
    return -1


def split_top_level(text: str, separator: re.Pattern[str]) -> list[str]:
    r"""The parts of the text between separators that are outside of brackets and environments.

    >>> split_top_level("(1,2),3", re.compile(","))
    ['(1,2)', '3']
    """
    depth, start, parts, index = 0, 0, [], 0
    while index < len(text):
        depth += (text[index] in OPENING) - (text[index] in CLOSING)
        depth += text.startswith(r"\begin", index) - text.startswith(r"\end", index)
        match = separator.match(text, index) if depth == 0 else None
        if match:
            parts.append(text[start:index])
            start = index = match.end()
        else:
            index += 1
    return [*parts, text[start:]]
