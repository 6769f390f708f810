"""Temporal-R1: GRPO with temporal IoU on the tasks whose rewards vary most under the beginner.

Li et al., 2025, arXiv:2506.01908.

Named before the first run of all seeds: the temporal IoU on held-out clips of training on the
quarter of the tasks with the largest deviation of rewards, minus that of training on all of them,
on as many rollouts. A random quarter is the control.

python recipes/vision/clip_arms.py      # writes the model that the pipeline starts from
grupo train recipes/vision/temporal_r1.py:PIPELINE --run runs/temporal
python recipes/vision/temporal_r1.py FOLDER [FIRST_SEED END]
"""

import sys
from pathlib import Path

from clip_arms import BEGINNER, ENV, GRPO, MODEL, POOL, arm, clip_recipe, print_table

from grupo.core.paper import Paper, Source
from grupo.evidence.survey import survey_tasks, write_survey
from grupo.pipeline import Pipeline, Stage, SurveyedTasks, SurveyStage
from grupo.tasks import Highest, Selected
from grupo.tasks.clips import ClipSpans
from grupo.toy.vision_lm import ensure_trained_vision

PAPER = Paper(
    title="Reinforcement Learning Tuning for VideoLLMs: Reward Design and Data Efficiency",
    use="Clips are searched for a span of time, and most tasks have rewards that hardly vary.",
    tags=("reward", "multimodal", "filtering"),
    kind="reward",
    catalogue=("temporal-r1-rlt",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "appletea233/Temporal-R1, verl/utils/reward_score/tvg.py; the selection from the abstract",
    ),
    plan="plain GRPO; here one update per step, without a KL divergence",
    missing=(
        "Questions with options (MultipleChoice scores them) and grounded ones, scored by a sum.",
    ),
    deviations=(
        "Weights of 0.5 each for IoU and format; the stored version of tvg.py has 0.9 and 0.1.",
        "The source states no number: the quarter with the largest deviation of 8 rewards is kept.",
        "Seconds are not divided by the clip's length, which cancels in the IoU.",
    ),
    shown=("docs/vision_shown/temporal_r1.md#results",),
)
ATTEMPTS = 8
QUARTER = POOL.size // 4
MOST_VARYING = Highest("reward_std", QUARTER)


def pipeline(seed: int = 0) -> Pipeline:
    """The survey of all tasks by the beginner, then GRPO on those whose rewards vary most.

    Args:
        seed: Seed of both stages.
    """
    base = clip_recipe(GRPO, seed)
    selected = base.replace(tasks=SurveyedTasks("survey", MOST_VARYING))
    return Pipeline(
        (SurveyStage("survey", base, attempts=ATTEMPTS), Stage("train", selected, start=""))
    )


PIPELINE = pipeline()


def survey_file(folder: Path) -> Path:
    """The survey of all tasks by the beginner, which the seeds share; it is written if missing."""
    file = folder / "survey.parquet"
    ensure_trained_vision(MODEL)
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = survey_tasks(BEGINNER.build(), ENV, POOL.load(), attempts=ATTEMPTS)
        write_survey(file, parts, {"attempts": ATTEMPTS})
    return file


if __name__ == "__main__":
    SELECTED = Selected(POOL, str(survey_file(Path(sys.argv[1]))), MOST_VARYING)
    ARMS = {
        "most varying quarter": arm(lambda seed: clip_recipe(GRPO, seed, SELECTED)),
        "random quarter": arm(
            lambda seed: clip_recipe(GRPO, seed, ClipSpans(QUARTER, seed=POOL.seed))
        ),
    }
    print_table(ARMS, sys.argv[1:])
