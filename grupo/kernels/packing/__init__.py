"""Packed rows: rows of tokens in one sequence that stores each shared prefix once."""

from grupo.core.paper import Paper, Source

PAPER = Paper(
    title="Prefix Grouper: Efficient GRPO Training through Shared-Prefix Forward",
    use="Always on: a group's prompt is read once, in generation and in updates.",
    kind="policy",
    catalogue=("prefix-grouper",),
    checked=("golden",),
    source=Source("code", "johncaged/PrefixGrouper, src/prefix_grouper/forward.py, function.py"),
    deviations=(
        "Prefixes form a tree: earlier turns that rollouts share are read once, too.",
        "A shared segment that saves fewer than 16 tokens is repeated.",
    ),
    audit=(
        "tokens, positions, logits and gradients compared with repeated prompts, in the numbers of"
        " the catalogue's row; the source is as that row quotes it"
    ),
    shown=(
        "tests/kernels/packing/test_prefix_grouper.py::test_a_group_has_14_tokens_instead_of_24",
        "tests/kernels/packing/test_prefix_grouper.py"
        "::test_logits_and_gradients_equal_those_of_repeated_prompts",
        "docs/speed.md#against-trl",
    ),
)
