"""The comparisons of the atlas. `recipes/real/atlas.py` has the recipes of their arms."""

from grupo.evidence.atlas.comparison import AtlasComparison

S, C, L, W = "sums_1_digit", "capitals", "lower_case", "lower_case, few words"
MORE, LESS = 1, -1
COMPARISONS = (
    AtlasComparison(
        S, "rloo", "grpo", "Baseline of the other answers, no division.", method="rloo"
    ),
    AtlasComparison(
        *(S, "reinforce_pp_baseline", "grpo"),
        "One scale for the batch.",
        method="reinforce_pp_baseline",
    ),
    AtlasComparison(
        S, "pods", "grpo", "8 of 16 answers by variance.", unit="tokens", method="pods"
    ),
    AtlasComparison(S, "grpo, kl_coef 0.04", "grpo", "A KL penalty, which costs.", direction=LESS),
    AtlasComparison(S, "grpo, 4 updates", "grpo", "Four updates from a batch.", unit="tokens"),
    AtlasComparison(S, "sft, then grpo", "grpo", "Two updates on right answers first."),
    AtlasComparison(
        S, "gspo, 4 updates", "grpo, 4 updates", "A ratio for the whole answer.", method="gspo"
    ),
    AtlasComparison(
        S, "cispo, 4 updates", "grpo, 4 updates", "Clipped weights keep gradients.", method="cispo"
    ),
    AtlasComparison(
        *(C, "dynamic sampling", "grpo", "Groups without a gradient are drawn again."),
        unit="tokens",
        method="dapo",
    ),
    AtlasComparison(
        *(C, "online_difficulty_filtering", "grpo", "Groups of medium difficulty alone."),
        unit="tokens",
        method="online_difficulty_filtering",
    ),
    AtlasComparison(
        C,
        "ghpo",
        "grpo",
        "The beginning of the answer where all fail.",
        unit="tokens",
        method="ghpo",
    ),
    AtlasComparison(C, "replay", "grpo", "Earlier answers fill groups.", method="vl_rethinker"),
    AtlasComparison(
        C,
        "w_reinforce",
        "grpo",
        "Mostly negative advantages.",
        metric="pass@3",
        method="w_reinforce",
    ),
    AtlasComparison(L, "dr_grpo", "grpo", "No division by length or spread.", method="dr_grpo"),
    AtlasComparison(
        L, "clip-higher, 4 updates", "grpo, 4 updates", "A wider upper bound.", method="dapo"
    ),
    AtlasComparison(
        L,
        "entropy_advantage",
        "grpo",
        "More weight where entropy is high.",
        method="entropy_advantage",
    ),
    AtlasComparison(
        L, "forking tokens", "grpo", "The fifth with most entropy alone.", method="forking_tokens"
    ),
    AtlasComparison(
        *(L, "length penalty", "grpo", "Shorter answers, most where tasks are easy."),
        metric="answer_tokens",
        direction=LESS,
        method="alp",
    ),
    AtlasComparison(L, "length penalty", "grpo", "What they cost in accuracy.", direction=LESS),
    AtlasComparison(W, "gdpo", "grpo", "Rewards are normalised one by one.", method="gdpo"),
)
