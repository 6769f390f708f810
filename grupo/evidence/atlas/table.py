"""The comparisons of the atlas. `recipes/real/atlas.py` has the recipes of their arms."""

from grupo.evidence.atlas.comparison import AtlasComparison

SUMS, CAPITALS, LOWER_CASE = "sums_1_digit", "capitals", "lower_case"
FEW_WORDS = "lower_case, few words"  # two rewards
LESS = -1
COMPARISONS = (
    AtlasComparison(
        SUMS, "rloo", "grpo", "Baseline of the other answers, no division.", method="rloo"
    ),
    AtlasComparison(
        *(SUMS, "reinforce_pp_baseline", "grpo"),
        "One scale for the batch.",
        method="reinforce_pp_baseline",
    ),
    AtlasComparison(
        SUMS, "pods", "grpo", "8 of 16 answers by variance.", unit="tokens", method="pods"
    ),
    AtlasComparison(
        SUMS, "grpo, kl_coef 0.04", "grpo", "A KL penalty, which costs.", direction=LESS
    ),
    AtlasComparison(SUMS, "grpo, 4 updates", "grpo", "Four updates from a batch.", unit="tokens"),
    AtlasComparison(SUMS, "sft, then grpo", "grpo", "Two updates on right answers first."),
    AtlasComparison(
        SUMS, "gspo, 4 updates", "grpo, 4 updates", "A ratio for the whole answer.", method="gspo"
    ),
    AtlasComparison(
        SUMS,
        "cispo, 4 updates",
        "grpo, 4 updates",
        "Clipped weights keep gradients.",
        method="cispo",
    ),
    AtlasComparison(
        *(CAPITALS, "dynamic sampling", "grpo", "Groups without a gradient are drawn again."),
        unit="tokens",
        method="dapo",
    ),
    AtlasComparison(
        *(CAPITALS, "online_difficulty_filtering", "grpo", "Groups of medium difficulty alone."),
        unit="tokens",
        method="online_difficulty_filtering",
    ),
    AtlasComparison(
        CAPITALS,
        "ghpo",
        "grpo",
        "The beginning of the answer where all fail.",
        unit="tokens",
        method="ghpo",
    ),
    AtlasComparison(
        CAPITALS, "replay", "grpo", "Earlier answers fill groups.", method="vl_rethinker"
    ),
    AtlasComparison(
        CAPITALS,
        "w_reinforce",
        "grpo",
        "Mostly negative advantages.",
        metric="pass@3",
        method="w_reinforce",
    ),
    AtlasComparison(
        LOWER_CASE, "dr_grpo", "grpo", "No division by length or spread.", method="dr_grpo"
    ),
    AtlasComparison(
        LOWER_CASE,
        "clip-higher, 4 updates",
        "grpo, 4 updates",
        "A wider upper bound.",
        method="dapo",
    ),
    AtlasComparison(
        LOWER_CASE,
        "entropy_advantage",
        "grpo",
        "More weight where entropy is high.",
        method="entropy_advantage",
    ),
    AtlasComparison(
        LOWER_CASE,
        "forking tokens",
        "grpo",
        "The fifth with most entropy alone.",
        method="forking_tokens",
    ),
    AtlasComparison(
        *(LOWER_CASE, "length penalty", "grpo", "Shorter answers, most where tasks are easy."),
        metric="answer_tokens",
        direction=LESS,
        method="alp",
    ),
    AtlasComparison(LOWER_CASE, "length penalty", "grpo", "Its cost in accuracy.", direction=LESS),
    AtlasComparison(FEW_WORDS, "gdpo", "grpo", "Rewards are normalised one by one.", method="gdpo"),
)
