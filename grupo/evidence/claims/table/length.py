"""Claims about length: bias, brevity and limits."""

from grupo.evidence.claims.claim import Arm, ArmBudget, Claim, Direction

HIGHER = Direction.HIGHER
LOWER = Direction.LOWER
GRPO = Arm("grpo(kl_coef=0.0)")

CLAIMS = (
    Claim(
        "dr_grpo",
        "Without the division by length, incorrect answers do not grow longer than they have to.",
        "padded",
        Arm("dr_grpo(max_length=32)"),
        GRPO,
        "wrong_length",
        LOWER,
    ),
    Claim(
        "dler",
        "A plain truncation penalty, with advantages normalised over the batch and"
        " refilled groups, gives more correct answers at a short length.",
        "padded",
        Arm("dler(max_length=16, group_size=8, kl_coef=0.0)"),
        GRPO,
        "short_success",
        HIGHER,
    ),
    Claim(
        "grpo_lead",
        "A length-dependent reward and advantages weighted by difficulty make correct"
        " answers concise.",
        "padded",
        Arm("grpo_lead()"),
        GRPO,
        "short_success",
        HIGHER,
    ),
    Claim(
        "alp",
        "A length penalty scaled by the solve rate shortens answers.",
        "padded",
        Arm("alp(group_size=8, length_coef=1e-5)"),
        GRPO,
        "length",
        LOWER,
    ),
    Claim(
        "cosine_length",
        "A reward that depends on length by a cosine improves accuracy while it controls length.",
        "padded",
        Arm("cosine_length(max_length=32, group_size=8)"),
        GRPO,
        "success",
        HIGHER,
    ),
    Claim(
        "kimi_length",
        "A length bonus relative to the group shortens answers.",
        "padded",
        Arm("kimi_length()"),
        GRPO,
        "length",
        LOWER,
    ),
    Claim(
        "grpo_lambda_length_reward",
        "A length reward in well-solved groups alone avoids the loss of accuracy of a"
        " length reward in all groups.",
        "padded",
        Arm("grpo_lambda_length_reward()"),
        Arm("kimi_length()"),
        "success",
        HIGHER,
    ),
    Claim(
        "gfpo",
        "Sampling twice as many rollouts and training on the shorter half makes answers"
        " shorter at the same number of updates.",
        "padded",
        Arm("gfpo(kl_coef=0.0)", ArmBudget.STEPS, rollouts_per_step=256),
        GRPO,
        "length",
        LOWER,
    ),
    Claim(
        "l_grpo",
        "A length bonus in groups that are all correct shortens answers.",
        "padded",
        Arm("l_grpo(max_length=32)"),
        GRPO,
        "length",
        LOWER,
    ),
    Claim(
        "drpo",
        "Weighting correct answers by brevity within DisCO shortens answers.",
        "padded",
        Arm("drpo(max_length=32)"),
        Arm("disco()"),
        "length",
        LOWER,
    ),
    Claim(
        "opo",
        "The optimal baseline, exactly on policy, keeps more entropy.",
        "padded",
        Arm("opo()"),
        GRPO,
        "entropy",
        HIGHER,
    ),
    Claim(
        "lambda_grpo_length",
        "A learned preference for length improves on the token mean.",
        "padded",
        Arm("lambda_grpo_length()"),
        Arm("grpo_released(group_size=8, kl_coef=0.0)"),
        "success_auc",
        HIGHER,
    ),
    Claim(
        "luspo",
        "Weighting sequences by their length removes the bias of GSPO towards short answers.",
        "padded_updates",
        Arm("luspo()"),
        Arm("gspo()"),
        "length",
        HIGHER,
    ),
)
