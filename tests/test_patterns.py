"""Patterns of Python's engine, which no time limit can interrupt, are written in the package.

Those of recipes, rows, servers and models run in `grupo.util.linear_patterns`.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.helpers.paths import ROOT

FUNCTIONS = {
    "compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer",
}  # fmt: skip
BUILDERS = {"join", "strip", "items", "values", "keys"}  # of texts and mappings
# a file and a function whose pattern is no constant, and why it is none of a user or of data
EXCEPTIONS = {
    ("grupo/rewards/reasoning_gym_guards.py", "matches"): "called with constants of its module",
    ("grupo/report/html/metric_docs.py", "metric_definition"): "a page of the package",
}

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Names = dict[str, list[ast.expr]]  # the expressions that a name stands for


def variable_patterns(source: str) -> list[tuple[str, int]]:
    """The function and the line of each call of `re` in a program whose pattern may vary."""
    return list(variable_in_scope(ast.parse(source), {}, ""))


def variable_in_scope(scope: ast.AST, outside: Names, function: str) -> Iterator[tuple[str, int]]:
    """The calls within a module or a function, and in the functions within it."""
    nodes = list(nodes_of_scope(scope))
    names = outside | assigned_names(nodes)
    for node in nodes:
        if isinstance(node, ast.Call) and is_search(node):
            if not is_constant(pattern_of(node), names):
                yield function, node.lineno
        elif isinstance(node, SCOPES):
            yield from variable_in_scope(node, names, getattr(node, "name", function))


def nodes_of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope; of functions in it, the function alone."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, SCOPES):
            yield from nodes_of_scope(child)


def is_search(call: ast.Call) -> bool:
    """True for a call of `re` or `regex` that takes a pattern."""
    match call.func:
        case ast.Attribute(value=ast.Name("re" | "regex"), attr=name):
            return name in FUNCTIONS
    return False


def pattern_of(call: ast.Call) -> ast.expr:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "pattern"]
    return [*named, *call.args][0]


def assigned_names(nodes: list[ast.AST]) -> Names:
    """What the names stand for that are assigned in a scope."""
    names = Names()
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                pairs = [(target, value)]
            case ast.arg(arg=name):
                pairs = [(ast.Name(name), ast.Name("an argument"))]
            case _:
                continue
        for target, value in pairs:
            for inner in ast.walk(target):
                if isinstance(inner, ast.Name):
                    names.setdefault(inner.id, []).append(value)
    return names


def is_constant(node: ast.expr, names: Names) -> bool:
    """True for texts of the source, those of other modules in capitals, and escaped texts."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(name) if name in names:
            others = {other: values for other, values in names.items() if other != name}
            return all(is_constant(value, others) for value in names[name])
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.isupper()  # a constant of another module
        case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr="escape")):
            return True
        case ast.Call(func=ast.Name("map"), args=[ast.Attribute(attr="escape"), _]):
            return True
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args) if name in BUILDERS:
            return all(is_constant(part, names) for part in (owner, *args))
        case ast.Call(func=ast.Attribute(value=owner, attr="encode")) | ast.Starred(value=owner):
            return is_constant(owner, names)
        case ast.Subscript(value=owner):
            return is_constant(owner, names)
        case ast.FormattedValue(value=value):
            return is_constant(value, names)
        case ast.BinOp(left=left, right=right):
            return is_constant(left, names) and is_constant(right, names)
        case ast.JoinedStr(values=parts) | ast.Tuple(parts) | ast.List(parts):
            return all(is_constant(part, names) for part in parts)
        case ast.Dict(values=parts):
            return all(is_constant(part, names) for part in parts)
        case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part):
            return is_constant(part, names)
        case ast.Lambda() | ast.Compare():
            return True  # a replacement beside a pattern, and how often one is repeated
    return False


def files() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "grupo").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text()


def test_patterns_are_constants_of_the_package():
    variable = [
        f"{name}:{line}"
        for name, source in files()
        if re.search(r"\b(re|regex)\.", source)
        for function, line in variable_patterns(source)
        if (name, function) not in EXCEPTIONS
    ]
    assert variable == []


def test_functions_of_re_are_called_by_their_full_names():
    for name, source in files():
        is_imported = re.search(r"^\s*(from|import)\b.*\b(re|regex)\b", source, re.MULTILINE)
        for node in ast.walk(ast.parse(source)) if is_imported else ():
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            aliases = node.names if isinstance(node, ast.Import) else ()
            renamed = [
                a.name for a in aliases if a.name == "regex" or (a.name == "re" and a.asname)
            ]
            assert (module in ("re", "regex"), renamed) == (False, []), name


def test_every_exception_is_needed():
    for name, function in EXCEPTIONS:
        source = (ROOT / name).read_text()
        assert function in {called for called, _ in variable_patterns(source)}, (name, function)


@pytest.mark.parametrize(
    "source",
    [
        "re.search(pattern, text)",
        "def f(pattern):\n    return re.compile(pattern)",
        "def f(name):\n    return re.compile(rf'a{name}')",
        "def f(x):\n    y = 'a' + x\n    return re.fullmatch(pattern=y, string='')",
        "re.split(self.pattern, text)",
        "re.sub('|'.join(words), '', text)",
        "re.finditer(row['pattern'], text)",
    ],
)
def test_a_variable_pattern_is_detected(source):
    assert len(variable_patterns(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "re.search('a', text)",
        "WORD = 'a'\nre.compile(rf'{WORD}{OTHER}{3 + 1}', re.DOTALL)",
        "def f(x):\n    y = r'\\s'.join(map(re.escape, x))\n    return re.findall(rf'({y})', '')",
        "re.sub(re.escape(name), '', text)",
        "A = tuple((re.compile(p), r) for p, r in (('a', 'b'), ('c', lambda m: m[0])))",
        "WORDS = {'a': 'b'}\nA = {n: re.compile(p) for n, p in WORDS.items()}",
        "pattern.search(text)",
    ],
)
def test_a_constant_pattern_is_accepted(source):
    assert variable_patterns(source) == []
