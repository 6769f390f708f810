"""The rules of `grupo methods suggest`: which answer speaks for which methods, and why.

A rule names methods, the best known first, or tags of the catalogue, or both. Its reason is a
statement about the mechanism of these methods; whether a mechanism has shown an effect is evidence,
which is looked up and reported apart from the reason.
"""

from dataclasses import dataclass

TEXT = ("language", "agents", "diffusion-text")
TOKENS = ("language", "agents")


@dataclass(frozen=True)
class Rule:
    """One answer and the methods that it speaks for.

    Args:
        question: Name of the question.
        answer: The answer.
        methods: Keys of methods.
        reason: What these methods change about the answer's problem.
        tags: Tags of the catalogue whose methods it speaks for, too, but less.
        policies: Kinds of policy for which it holds.
        weight: Factor on the points of the question: small for an answer that says little.
    """

    question: str
    answer: str
    methods: tuple[str, ...]
    reason: str
    tags: tuple[str, ...] = ()
    policies: tuple[str, ...] = TEXT
    weight: float = 1.0


RULES = (
    # --- what is trained
    Rule(
        "policy",
        "language",
        ("dapo", "dr_grpo", "rloo"),
        "a usual start for a language model",
        policies=("language",),
    ),
    Rule(
        "policy",
        "agents",
        ("mt_grpo", "gigpo", "salt", "seeupo"),
        "turns have rewards or advantages of their own",
        ("agents",),
        ("agents",),
    ),
    Rule(
        "policy",
        "diffusion-text",
        ("coupled_grpo", "justgrpo"),
        "made for masked diffusion: the log-probabilities of unmasked tokens are estimated, or"
        " exact",
        policies=("diffusion-text",),
        weight=6.0,
    ),
    Rule(
        "policy",
        "images",
        ("flow_grpo", "grpo_guard", "tempflow_grpo"),
        "made for the denoising steps of a flow-matching model",
        policies=("images",),
    ),
    # --- how answers are scored
    Rule(
        "reward",
        "verifier",
        ("dapo", "max_rl", "bnpo", "etr"),
        "made for rewards of 0 and 1",
        weight=0.4,
    ),
    Rule(
        "reward",
        "graded",
        ("rloo", "dr_grpo", "mapo"),
        "small differences of graded rewards are not blown up by a group's standard deviation",
    ),
    Rule(
        "reward",
        "graded",
        ("flow_grpo", "pref_grpo"),
        "made for scores of a reward model",
        policies=("images",),
    ),
    Rule(
        "reward",
        "terms",
        ("gdpo", "posterior_grpo", "trust_grpo"),
        "reward terms are normalised or weighted one by one, before they are added",
    ),
    Rule(
        "reward",
        "comparisons",
        ("arenarl", "spo_selfplay"),
        "the reward of an answer is its rank or win rate within its group",
        ("preferences",),
    ),
    Rule(
        "reward",
        "comparisons",
        ("pref_grpo", "flow_grpo"),
        "the reward of an image is its win rate within its group",
        policies=("images",),
    ),
    Rule(
        "reward",
        "none",
        ("ttrl", "empo", "em_rl_sequence", "intuitor", "rent", "em_rl_token"),
        "the reward is computed from the policy's own answers or probabilities",
        ("unsupervised",),
    ),
    # --- what else is there
    Rule(
        "extra",
        "solutions",
        ("luffy", "hpt", "chord_phi", "srft"),
        "worked solutions are imitated beside the policy's own rollouts",
        ("sft",),
        TOKENS,
    ),
    Rule(
        "extra",
        "hints",
        ("guide_grpo", "scaf_grpo"),
        "a hint is added to the prompt where all answers of a group fail",
        ("hints",),
        TOKENS,
    ),
    Rule(
        "extra",
        "teacher",
        ("kdrl", "opd", "g_opd", "gkd"),
        "the teacher scores every token that the policy generated",
        ("distillation",),
        TOKENS,
    ),
    # --- what goes wrong
    Rule(
        "problem",
        "unknown",
        ("grpo", "rloo", "dr_grpo"),
        "few changes against the method that others are described by",
        weight=0.2,
    ),
    Rule(
        "problem",
        "too-hard",
        ("dapo", "vade", "ngrpo", "max_rl"),
        "groups without a correct answer are replaced, weighted or made to count",
        ("curriculum",),
    ),
    Rule(
        "problem",
        "too-easy",
        ("dapo", "spo_single_stream", "vade", "ngrpo"),
        "groups of correct answers only are replaced, or have a baseline from other steps",
        ("curriculum",),
    ),
    Rule(
        "problem",
        "too-long",
        ("grpo_lambda_length_reward", "dler", "l_grpo", "kimi_length", "alp", "dr_grpo"),
        "length is rewarded, penalised or no longer divided by",
        ("length",),
    ),
    Rule(
        "problem",
        "truncated",
        ("dler", "dapo", "elastic_reasoning"),
        "answers that reach the limit are penalised or kept within a budget",
        ("length",),
    ),
    Rule(
        "problem",
        "entropy",
        ("aspo_ratio", "dapo", "skywork_or1", "kl_cov"),
        "rare tokens may gain more probability, or the entropy is kept up",
        ("entropy",),
    ),
    Rule(
        "problem",
        "diversity",
        ("max_rl", "passk_training", "unlikeliness", "passk_leave_one_out"),
        "the best of several answers counts, or rare correct answers count more",
        ("exploration",),
    ),
    Rule(
        "problem",
        "drift",
        ("rloo", "ema_pg", "prorl", "posterior_grpo"),
        "a KL divergence holds the policy near a reference, or the reward is paid with conditions",
        ("kl",),
    ),
    Rule(
        "problem",
        "unstable",
        ("sapo", "gspo", "gspo_token", "gmpo"),
        "ratios are taken per answer or fade out instead of being cut",
        ("clipping",),
    ),
    Rule(
        "problem",
        "mismatch",
        ("tis", "icepop", "seq_mis", "trm"),
        "weights or masks correct for the difference of engine and trainer",
        ("importance-sampling",),
        TOKENS,
    ),
    Rule(
        "problem",
        "credit",
        ("optimal_token_baseline", "tempo", "prl"),
        "tokens or steps have baselines or advantages of their own",
        ("process-reward",),
    ),
    Rule(
        "problem",
        "credit",
        ("mt_grpo", "gigpo", "salt", "igpo"),
        "turns that were taken in the same state are compared, or have rewards of their own",
        policies=("agents",),
    ),
    Rule(
        "problem",
        "credit",
        ("tempflow_grpo", "branch_grpo"),
        "each denoising step has an advantage of its own",
        policies=("images",),
    ),
    Rule(
        "problem",
        "noise",
        ("posterior_grpo", "trust_grpo", "rloo", "seed_grpo"),
        "an unreliable reward counts less, or is paid for correct answers only",
    ),
    Rule(
        "problem",
        "noise",
        ("pref_grpo", "flow_grpo"),
        "win rates depend less on the scale of a noisy score",
        policies=("images",),
    ),
    Rule(
        "problem",
        "cost",
        ("two_grpo", "spo_single_stream", "vade", "treepo"),
        "fewer rollouts per task, better chosen tasks, or shared beginnings",
    ),
    Rule(
        "problem",
        "cost",
        ("branch_grpo", "tempflow_grpo"),
        "the images of a group share denoising steps",
        policies=("images",),
    ),
    Rule(
        "problem",
        "unstable",
        ("grpo_guard", "flow_grpo"),
        "the ratios of all denoising steps are on one scale, so that the clip acts",
        policies=("images",),
    ),
    Rule(
        "problem",
        "drift",
        ("flow_grpo", "grpo_guard"),
        "a KL divergence to the reference policy, in closed form for each denoising step",
        policies=("images",),
    ),
    # --- where rollouts are generated
    Rule(
        "sampler",
        "engine",
        ("tis", "seq_tis", "minirl", "icepop"),
        "the ratio to the engine's probabilities corrects the difference",
        policies=TOKENS,
    ),
    Rule(
        "sampler",
        "stale",
        ("topr", "m2po", "sapo", "vespo", "gspo"),
        "made for rollouts of an older policy",
        ("off-policy",),
    ),
    Rule(
        "sampler",
        "stale",
        ("grpo_guard",),
        "several updates per step need a clip that acts at every denoising step",
        policies=("images",),
    ),
)
