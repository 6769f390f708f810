"""All scripts, by method, and those in which sampler and source disagree."""

import pkgutil
from importlib import import_module

import tests.reference.rollouts_plain as references
from tests.reference.rollouts import (
    scripts_branches,
    scripts_budgets,
    scripts_given,
    scripts_hints,
    scripts_refinement,
    scripts_splits,
    scripts_trees,
)

for module in pkgutil.iter_modules(references.__path__):
    import_module(f"{references.__name__}.{module.name}")

SCRIPTS = {
    **scripts_hints.SCRIPTS,
    **scripts_given.SCRIPTS,
    **scripts_refinement.SCRIPTS,
    **scripts_splits.SCRIPTS,
    **scripts_budgets.SCRIPTS,
    **scripts_trees.SCRIPTS,
    **scripts_branches.SCRIPTS,
}

STATED_DEVIATIONS = {
    ("hill", "a hint has the short answer as a number"): (
        "the release rejects an answer of one or two letters only behind words such as `is`; here"
        " any separate word is rejected"
    ),
    ("hill", "a hint has the long answer inside a word"): (
        "the release rejects a longer answer anywhere in the hint; here only as a separate word"
    ),
    ("thinktuning", "some feedback"): (
        "the release's teacher mask covers the policy's own part of such an answer as well"
    ),
    ("thinktuning", "truncated answers"): (
        "the release leaves answers without an end token as they are; here they get feedback"
    ),
    ("treepo", "a remainder"): (
        "the release gives the last path all segments that are left over; here the first paths get"
        " one each"
    ),
}
