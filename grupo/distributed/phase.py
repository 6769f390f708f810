"""Phases of a run: labels for messages about ranks that have not arrived at an exchange."""

from enum import StrEnum


class Phase(StrEnum):
    """A point of a run at which ranks exchange data. It is a label: no code depends on it.

    The value completes the message "rank 1 has not reached …".
    """

    RUN_FOLDER_NAMED = "folder of the run named"
    RUN_FOLDER_CREATED = "folder of the run created"
    RUN_EXTENDED = "run extended"
    QUICKSTART_MODEL_TRAINED = "model of the quickstart trained"
    PIPELINE_FOLDER_NAMED = "folder of the pipeline named"
    PIPELINE_FOLDER_CREATED = "folder of the pipeline created"
    STAGE_STATUS_READ = "status of the stage read"
    STAGE_ENDED = "stage ended"
    WEIGHTS_MERGED = "weights merged"
    ANSWERS_COLLECTED = "answers of a stage collected"
    VERSIONS_COMPARED = "versions compared"
    WEIGHTS_COMPARED = "weights compared"
    CHECKPOINT_RESTORED = "checkpoint restored by rank 0"
    WEIGHTS_ON_SERVERS = "weights on the servers"
    ROLLOUTS_GENERATED = "rollouts generated"
    UNFINISHED_GROUPS_EXCHANGED = "unfinished groups exchanged"
    GENERATION_ENDED = "generation of the step ended"
    REPLAYED_ROLLOUTS_READ = "replayed rollouts read"
    MICROBATCHES_CHOSEN = "rows divided into micro-batches"
    SIGNALS_EVALUATED = "signals evaluated"
    ROUTERS_COUNTED = "routers counted"
    GRADIENTS_ACCUMULATED = "gradients accumulated"
    GRADIENTS_SUMMED = "gradients summed"
    WEIGHTS_CHECKED = "weights checked"
    MEMORY_SUFFICED = "memory sufficed"
    WEIGHTS_GATHERED = "weights gathered"
    UPDATED = "updated"
    STEP_ENDED = "step ended"
    EVALUATION_GENERATED = "evaluation rollouts generated"
    EVALUATION_ENDED = "evaluation ended"
