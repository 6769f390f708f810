"""What causes each finding as a rule, most probable first, and what to try."""

from grupo.report.checks.finding import Advice

TOO_SHORT = Advice(
    "too short",
    "note",
    ("The run has just begun, or stopped at once.",),
    ("Look again after some steps.",),
)
ZERO_REWARD = Advice(
    "reward always zero",
    "error",
    (
        "The reward does not recognise right answers: their form is not the one it reads.",
        "The tasks are too hard for the policy.",
        "Answers are cut off before they end.",
    ),
    (
        "Read a few answers with `grupo rollouts` and judge them by eye.",
        "Call the reward on an answer written by hand that must be right.",
        "Begin with easier tasks, or with a part of the reward that is earned at times.",
    ),
)
CONSTANT = Advice(
    "reward never differs",
    "error",
    (
        "The reward returns the same whatever the answer is.",
        "It raises inside and falls back to a number.",
        "Every task was solved before the run began.",
    ),
    (
        "Call the reward on a right and on a wrong answer written by hand.",
        "Harder tasks, if `grupo eval` says that all are solved.",
    ),
)
LEARNED = Advice(
    "nothing left to learn", "note", ("The tasks are learned.",), ("Stop here, or harder tasks.",)
)
ALL_RIGHT = Advice(
    "no signal, all right",
    "error",
    (
        "The tasks are too easy: every answer earns the same.",
        "The policy earns all it can of one part of the reward and never the rest.",
    ),
    ("Harder tasks.", "A reward that tells good from better."),
)
ALL_WRONG = Advice(
    "no signal, all wrong",
    "error",
    (
        "The tasks are too hard for so few attempts.",
        "Only some of what is right is recognised by the reward.",
        "The policy has forgotten how to answer.",
    ),
    (
        "Easier tasks, or more rollouts for each task.",
        "A reward with steps between wrong and right.",
        "Read the answers: `grupo rollouts`.",
    ),
)
NOTHING_LEARNED = Advice(
    "nothing learned from",
    "warning",
    ("The method's `curate` drops what was sampled.", "Too few rollouts could be judged."),
    ("More prompts a step, or a curation that keeps more.", "See to failed rewards first."),
)
UNCHANGING_PART = Advice(
    "reward part never changes",
    "warning",
    ("It measures nothing of these answers.", "It is out of the policy's reach."),
    ("Try that reward by hand on answers that ought to differ.",),
)
EARNED_PART = Advice(
    "reward part never changes",
    "note",
    ("Every answer earns it already.", "It measures nothing of these answers."),
    ("Leave it out, or let it ask for more.",),
)
IDENTICAL_ANSWERS = Advice(
    "identical answers",
    "warning",
    (
        "The temperature is too low, or top_k or top_p leave one token.",
        "The policy has collapsed to one answer for each task.",
        "Answers are very short, so that few differ.",
    ),
    ("A temperature of 1.0 without top_k and top_p.", "More data, or a lower `lr`."),
)
ZERO_LOSS = Advice(
    "loss is zero",
    "note",
    (
        "Normal on policy: with one update a step every ratio is 1, and the advantages of a group"
        " add up to 0. Their gradient does not.",
    ),
    ("Watch the reward and the held-out tasks, not the loss.",),
)
NO_GRADIENT = Advice(
    "no gradient",
    "error",
    (
        "The method's credit gives every rollout 0.",
        "Every ratio is clipped.",
        "What is trained has no part in the answer: adapters on the wrong layers.",
    ),
    ("Look at `advantage/zero` and at `clip/`.", "Train without adapters once."),
)
NONFINITE = Advice(
    "gradient not finite",
    "error",
    (
        "A ratio overflows: the policy moved too far within a step.",
        "A dtype with too small a range.",
    ),
    ("A lower `lr`, or fewer updates a step.", 'dtype="float32" for a few steps.'),
)
EXPLODES = Advice(
    "gradient explodes",
    "warning",
    ("`lr` is too high.", "The policy has become so sure that rare answers weigh much."),
    ("A third of the `lr`.", "A smaller `max_norm`, or a KL to the reference."),
)
MISMATCH = Advice(
    "sampler and trainer disagree",
    "warning",
    (
        "The sampler answers with other weights, or in another precision.",
        "Temperature, top_k or top_p are not the same on both sides.",
        "Answers were tokenised anew and came out otherwise.",
    ),
    ("A smaller `tolerance`, so that ratios are the trainer's own.", 'dtype="float32" once.'),
)
KL_GROWS = Advice(
    "KL grows without bound",
    "warning",
    ("The KL's weight is too small to hold.", "The reward pays for strange answers."),
    ("A larger weight of the KL, or a lower `lr`.", "Read the best: `grupo rollouts --best 10`."),
)
COLLAPSE = Advice(
    "entropy collapse",
    "warning",
    ("The policy repeats what first paid.", "`lr` is too high, or the data too few."),
    (
        "Clip(low=0.2, high=0.28), which leaves rare answers more room.",
        "A lower `lr`, or a loss `+ (-0.001) * Entropy()`.",
    ),
)
CUT_OFF = Advice(
    "answers cut off",
    "warning",
    ("`policy.limit` is too small for the tasks.", "The policy does not end its answers."),
    ("A larger `policy.limit`.", "A `policy.stop` text.", "A prompt that asks for brevity."),
)
FAILED = Advice(
    "failed rewards",
    "warning",
    ("The reward raises, hangs or returns no number for some answers.",),
    ("`grupo rollouts --failed` shows them.", "Try the reward on such an answer by hand."),
)
FELL_BACK = Advice(
    "reward fell back",
    "warning",
    ("`lr` is too high, or an update went too far.", "The tasks became harder."),
    ("A lower `lr`, or a schedule that falls.", "A KL to the reference."),
)
LONGER = Advice(
    "longer without reward",
    "warning",
    (
        "`sequence_mean` punishes an action of a long wrong answer less than one of a short one.",
        "The reward pays for length.",
    ),
    ("A token mean or a fixed length in its place: `dapo`, `dr_grpo`.",),
)
HELD_OUT_FELL = Advice(
    "held-out share fell",
    "error",
    (
        "The reward in training is not what the evaluation counts as solved.",
        "The policy was damaged: `lr` is too high.",
    ),
    ("Compare `evaluation.solved` with the reward.", "A lower `lr`."),
)
