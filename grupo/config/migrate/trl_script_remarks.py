"""Remarks on what a script of TRL does beside its options: it is not translated, but named."""

import ast
from collections.abc import Iterator

# methods of a data set that change its rows
ROW_CHANGES = (
    "map",
    "filter",
    "select",
    "take",
    "skip",
    "rename_column",
    "rename_columns",
    "train_test_split",
)
PARSERS = ("TrlParser", "HfArgumentParser")
PICTURES = ("image", "images")  # columns of TRL's data sets
METHODS = {
    "BCOTrainer": "bco",
    "DPOTrainer": "dpo",
    "GKDTrainer": "gkd",
    "ORPOTrainer": "orpo",
    "PPOTrainer": "ppo",
    "SFTTrainer": "sft",
}


def script_remarks(tree: ast.AST, trainers: tuple[str, ...]) -> Iterator[str]:
    """Remarks on what changes the training of a script and is not in its options.

    Args:
        tree: The script.
        trainers: Names of the trainers whose options are read.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {name_of(call) for call in calls}
    for parser in PARSERS:
        if parser in names:
            yield (
                f"{parser} takes options from the command line, which are not in the script: give"
                " them to the recipe"
            )
    keywords = {
        k.arg: ast.unparse(k.value)[:60]
        for call in calls
        if name_of(call) in trainers
        for k in call.keywords
    }
    if "peft_config" in keywords and not names & {"LoraConfig", "ModelConfig"}:
        yield f"peft_config = {keywords['peft_config']} is no LoraConfig(…): set policy.lora"
    if keywords.get("eval_dataset", "None") != "None":
        yield f"eval_dataset = {keywords['eval_dataset']} is not read: set eval_tasks"
    yield from _of_rows(calls)
    if any(isinstance(node, ast.Constant) and node.value in PICTURES for node in ast.walk(tree)):
        yield 'the script names pictures: policy.type = "VisionLM" reads those of the rows'


def other_trainers(names: set[str]) -> str:
    """The trainers of a script that are not translated, with grupo's methods; "" without any."""
    others = sorted(name for name in names if name.endswith("Trainer"))
    known = [METHODS[name] for name in others if name in METHODS]
    shown = f": `grupo methods {known[0]}` describes grupo's method" if known else ""
    return f", but {', '.join(others)}{shown}" if others else ""


def name_of(call: ast.Call) -> str:
    """The name of a function or class, without its modules."""
    return ast.unparse(call.func).rpartition(".")[2]


def _of_rows(calls: list[ast.Call]) -> Iterator[str]:
    """Changes of the rows of a data set, and further data sets."""
    loads = [call for call in calls if name_of(call) == "load_dataset"]
    if not loads:
        return
    methods = {name_of(call) for call in calls if isinstance(call.func, ast.Attribute)}
    if changes := [name for name in ROW_CHANGES if name in methods]:
        yield (
            f"the script changes its rows by {' and '.join(changes)}, which is not executed:"
            " tasks reads the rows as they are stored"
        )
    if len(loads) > 1:
        others = " and ".join(ast.unparse(call)[:80] for call in loads[1:])
        yield f"of {len(loads)} data sets the first was taken, without {others}"
