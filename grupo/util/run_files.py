"""Names of the files and folders in the folder of a run, a pipeline or a comparison.

docs/runs.md explains their content.
"""

# a run
RECIPE_JSON = "recipe.json"  # the stored recipe
METRICS_FILE = "metrics.jsonl"
ROLLOUTS_FILE = "rollouts.jsonl"
JOURNAL_FILES = {  # by the name of the journal
    "metrics": METRICS_FILE,
    "rollouts": ROLLOUTS_FILE,
    "responses": "responses.jsonl",
}
SUMMARY_FILE = "summary.json"  # also of a stage of a pipeline; written at the end
CRASH_FILE = "crash.json"  # exit code and last output line of a compared run's crashed process
LOCK_FILE = "lock"  # also of a pipeline
MERGED_FILE = "merged.safetensors"  # the merged weights from which a run of a pipeline starts
CHECKPOINTS_FOLDER = "checkpoints"
CHECKPOINT_DATA_FILE = "data.json"  # in the folder of a checkpoint
MEDIA_FOLDER = "media"

PIPELINE_FILE = "pipeline.json"
COMPARISON_FILE = "comparison.json"
