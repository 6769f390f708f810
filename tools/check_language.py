"""Check names, docstrings and comments: `python tools/check_language.py FOLDER...`

Identifiers are nouns and verbs of the field, docstrings begin with one, class names are unique.
"""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

# participles and pronouns that leave out the noun, and metaphors that the field does not use
IDENTIFIERS = re.compile(
    "said|told|heard|asked|blame|spoken|speakers?|voices?|company|theirs|ours|whom?|whoever"
    "|somebody|nobody|everybody|sprout|seedling|apprentice|novice"
)
# names that have another meaning in the glossary, and the word to use
OTHER_WORDS = {
    "Action": "Response",
    "single_action": "single_response",
    "RolloutPool": "ReplayBuffer",
    "CreditedRollout": "StoredRollout",
    "Scorer": "SignalModel",
    "trained_under": "training_prompt",
    "stop_gradient": "surrogate_gradient",
    "of_rank_0": "broadcast_from_rank_0",
    "lost_ranks_named": "convert_to_rank_lost_error",
    "moved_token": "uncached_token",
    "EnvWithLosses": "EnvWithLostReplies",
    "RecipeFile": "StoredRecipe",
    "Shown": "SimilarExamples",
    "Remembered": "RecalledThoughts",
    "Reconsidered": "AdvantageRevision",
    "MonteCarlo": "StepTreeSearch",
    "as_chosen": "mark_not_sampled",
}
FIRST_WORDS = re.compile(
    r"(what|whom?|whoever|that|those|it|they|all (of|that|who)|every(body|thing)|nobody)\b", re.I
)
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
PROSE = re.compile(r"\b(said|told|heard|blame|theirs|somebody|nobody|whoever|whom)\b", re.I)


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every definition, argument and assigned variable."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def prose(text: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring and comment."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), docstring
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def problems(path: Path, text: str) -> Iterator[str]:
    """One line for each violation in a file."""
    tree = ast.parse(text)
    for line, name in identifiers(tree):
        if IDENTIFIERS.fullmatch(name.strip("_").lower()):
            yield f"{path}:{line}: the name {name!r} says no noun: name the thing"
        if word := OTHER_WORDS.get(name):
            yield f"{path}:{line}: the name {name!r} is {word!r} in the glossary"
    for line, sentence in prose(text, tree):
        if first := FIRST_WORDS.match(sentence):
            yield f"{path}:{line}: the docstring begins with {first[0]!r}, no noun or verb"
        if word := PROSE.search(sentence):
            yield f"{path}:{line}: {word[0]!r} in prose: use the field's verb, or name the subject"


def main(folders: list[str]) -> int:
    """Print every violation below the folders; return 1 if there is one."""
    found: list[str] = []
    classes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found += problems(path, text)
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{path}:{node.lineno}")
    duplicates = {name: places for name, places in classes.items() if len(places) > 1}
    found += [f"the class name {n!r} is not unique: {', '.join(p)}" for n, p in duplicates.items()]
    print(*found, sep="\n", end="\n" if found else "")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
