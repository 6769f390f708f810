r"""Scalars of mathematical answers, translated to LaTeX without decimals, percents and units."""

import re
from typing import Any

from grupo.rewards.math_text import GREEK, closing_bracket

FUNCTIONS = (
    "arcsin|arccos|arctan|arccot|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|exp|log|lg|ln|sqrt|gcd|lcm"
    "|max|min|det"
)
# commands that the parser of the math process knows; it reads others as products of letters
COMMANDS = re.compile(
    rf"\\(?:{FUNCTIONS}|{GREEK}|frac|binom|over|pi|infty|cdot|times|div|circ|lfloor|rfloor|lceil"
    r"|rceil|int|sum|prod|lim|to|mathbb|emptyset|setminus|cap|angle|ldots)(?![A-Za-z])"
)
CHARACTERS = re.compile(r"[0-9A-Za-z+\-*/^_(){}\[\]|!.,= ]*")
PLAIN_NAMES = re.compile(rf"(?<![\\A-Za-z])(?:{FUNCTIONS}|{GREEK}|pi)(?![A-Za-z])")
PLAIN_INFINITY = re.compile(r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])")
LONG_WORD = re.compile(r"(?<!\\)(?<![A-Za-z])[A-Za-z]{5,}")
# two numbers without an operator, a number in another base, a double factorial
AMBIGUOUS = re.compile(r"[\d.]\s+\.?\d|\.\d*\.|\d\s*_|!!")
REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*)\\(?:overline|bar)\s*\{(\d+)\}")
MIXED_NUMBER = re.compile(r"(?<![\d.^_{}A-Za-z\\])(\d+)\s*\\frac\s*\{(\d+)\}\s*\{(\d+)\}")
MIXED_PLAIN = re.compile(r"(?<![\d.^_])(\d+)\s+(\d+)/(\d+)(?![\d.])")
SHORT_FRACTION = re.compile(
    r"\\frac\s*(\d)\s*(\d)(?!\d)|\\frac\s*(\d)\s*(?=\{)|\\frac\s*(\{[^{}]*\})\s*(\d)"
)
ARGUMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\^\s*([+-]?\d+(?:\.\d+)?|-[A-Za-z])", r"^{\1}"),
        (r"(?<![\d_^A-Za-z.])(\d+)\s*\(", r"\1 \\cdot ("),  # 2(3) would be a mixed number
    )
)
DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])|(?<![\d.])(\d+)\.(?![\d.])")
PERCENT = re.compile(
    r"(.*[\d)}A-Za-z])\s*(?:\\?%|\\text\{\s*percent\s*\}|\s+percent|\s+pct)", re.DOTALL
)
SCIENTIFIC = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)[eE]([+-]?\d{1,6})")
DECIMAL_LITERAL = re.compile(r"[+-]?(\d*)\.(\d+)")

# units: what may follow a number without a change of its value
TEXT_UNIT = re.compile(r"(.*[\d)}\]|])\s*\\text\{([^{}]*)\}\s*(?:\^\s*\{?([23])\}?)?", re.DOTALL)
SHORT_UNITS = "cm|mm|km|kg|mg|ml|ft|mph|kph|lbs?|hrs?|mins?|secs?|usd|men|days?|cups?"
PLAIN_UNIT = re.compile(
    rf"([+-]?[\d.,/]*\d\.?)(?:\s*({SHORT_UNITS})|\s+([a-z]{{4,}}(?: [a-z]{{4,}})?))"
    r"(?:\s*\^\s*\{?([23])\}?)?"
)
DEGREES = re.compile(r"(.*[\d)}])\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ)", re.DOTALL)
CURRENCY = re.compile(r"([+-]?)\s*(\\\$|\$|€|£|¥)\s*(.*\d.*)", re.DOTALL)
CURRENCY_NAMES = {"$": "dollar", r"\$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
UNIT_SYNONYMS = {
    "centimeter": "cm", "centimetre": "cm", "meter": "m", "metre": "m", "kilometer": "km",
    "kilometre": "km", "millimeter": "mm", "millimetre": "mm", "gram": "g", "kilogram": "kg",
    "second": "s", "sec": "s", "minute": "min", "hour": "h", "hr": "h", "inch": "in", "inche": "in",
    "foot": "ft", "feet": "ft", "liter": "l", "litre": "l", "usd": "dollar", "euros": "euro",
    "degree": "°", "deg": "°", "pound": "lb", "square unit": "unit^2", "sq unit": "unit^2",
    "cubic unit": "unit^3",
}  # fmt: skip
# words after a number that change or deny it: no units
NO_UNITS = (
    "hundred thousand million billion trillion dozen score half halves third thirds quarter"
    " fourth fourths fifth fifths tenth tenths hundredth thousandth double twice triple squared"
    " cubed factorial plus minus times over by mod modulo divided and or not no nor is isn are if"
    " than more less most least about around approximately nearly almost to from at up down"
    " another something maybe either neither both except but wrong incorrect false unless"
    " percent percentage pct per pi e i"
)


def parse_scalar(text: str) -> dict[str, Any] | None:
    r"""The node of a scalar: its LaTeX and unit, and its digits if it is a decimal number.

    None if the text is not one scalar.

    >>> node = parse_scalar(r"2.5 \text{ cm}")
    >>> node["latex"], node["unit"], node["decimals"]
    ('\\frac{25}{10}', 'cm', 1)
    """
    text, unit = _split_unit(text.strip())
    percent = PERCENT.fullmatch(text)
    text = percent[1] if percent else text
    text = _join_thousands(text)
    scientific = SCIENTIFIC.fullmatch(text)
    text = rf"{scientific[1]} \cdot 10^{{{int(scientific[2])}}}" if scientific else text
    literal = DECIMAL_LITERAL.fullmatch(text)
    latex = _to_latex(text)
    if not latex:
        return None
    return {
        "kind": "scalar",
        "text": "".join(text.split()),
        "latex": rf"\frac{{{latex}}}{{100}}" if percent else latex,
        "unit": unit,
        "decimals": len(literal[2]) if literal and not percent else -1,
        "significant": len((literal[1] + literal[2]).lstrip("0")) if literal else 0,
    }


def _split_unit(text: str) -> tuple[str, str]:
    """The text without its unit, and the unit in its singular; "" if it has none."""
    degrees = DEGREES.fullmatch(text)
    if degrees:
        return degrees[1], "°"
    currency = CURRENCY.fullmatch(text)
    if currency:
        return currency[1] + currency[3], CURRENCY_NAMES.get(currency[2], currency[2])
    match = TEXT_UNIT.fullmatch(text) or PLAIN_UNIT.fullmatch(text)
    if not match:
        return text, ""
    number, *names, power = match.groups()
    words = "".join(name or "" for name in names).lower().replace(".", " ").split()
    if not words or len(words) > 3 or set(words) & set(NO_UNITS.split()):
        return text, ""
    name = " ".join(words)
    singular = name[:-1] if name.endswith("s") and len(name) > 2 else name
    return number, UNIT_SYNONYMS.get(singular, singular) + (f"^{power}" if power else "")


def _join_thousands(text: str) -> str:
    match = re.fullmatch(r"([+-]?\d{1,3})((?:,\d{3})+)(\.\d*)?", text.strip())
    return match[1] + match[2].replace(",", "") + (match[3] or "") if match else text


def _to_latex(text: str) -> str:
    """The text in the LaTeX of the math process, or "" if it is no scalar expression."""
    text = PLAIN_INFINITY.sub(r"\\infty ", PLAIN_NAMES.sub(lambda m: f"\\{m[0]} ", text))
    text = _braces_for_arguments(text.replace("**", "^"))
    for pattern, replacement in ARGUMENTS:
        text = pattern.sub(replacement, text)
    text = REPEATING.sub(_repeating_fraction, text)
    text = SHORT_FRACTION.sub(_complete_fraction, text)
    text = MIXED_NUMBER.sub(r"(\1+\\frac{\2}{\3})", text)
    text = MIXED_PLAIN.sub(r"(\1+\\frac{\2}{\3})", text)
    is_known = CHARACTERS.fullmatch(COMMANDS.sub(" ", text.replace(r"\{", "").replace(r"\}", "")))
    if not is_known or LONG_WORD.search(text) or AMBIGUOUS.search(text):
        return ""
    if not re.search(r"[0-9A-Za-z]", text):
        return ""
    return DECIMAL.sub(_decimal_fraction, text).strip()


def _braces_for_arguments(text: str) -> str:
    """`^(…)` and `sqrt(…)` with braces instead of parentheses."""
    pattern = re.compile(r"(?:\^|\\sqrt)\s*(?=\()")
    match = pattern.search(text)
    while match:
        end = closing_bracket(text, match.end())
        if end < 0:
            return text
        inside = text[match.end() + 1 : end]
        text = f"{text[: match.end()].rstrip()}{{{inside}}}{text[end + 1 :]}"
        match = pattern.search(text, match.end())
    return re.sub(r"\\sqrt\s*([A-Za-z0-9])", r"\\sqrt{\1}", text)


def _complete_fraction(match: re.Match[str]) -> str:
    r"""\frac12, \frac1{2} and \frac{1}2 with both braces."""
    if match[1]:
        return rf"\frac{{{match[1]}}}{{{match[2]}}}"
    return rf"\frac{{{match[3]}}}" if match[3] else rf"\frac{match[4]}{{{match[5]}}}"


def _repeating_fraction(match: re.Match[str]) -> str:
    r"""0.1\overline{6} as an exact fraction."""
    whole, fixed, period = match.groups()
    shifted, start = int(whole + fixed + period), int((whole + fixed) or "0")
    return rf"\frac{{{shifted - start}}}{{{'9' * len(period)}{'0' * len(fixed)}}}"


def _decimal_fraction(match: re.Match[str]) -> str:
    """A decimal number as an exact fraction."""
    if match[3]:
        return match[3]
    return rf"\frac{{{int(match[1] + match[2])}}}{{1{'0' * len(match[2])}}}"
