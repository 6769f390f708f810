"""Options of verl's trainer, rewards and services: the sections beside actor, rollout and data."""

from grupo.config.option_hints import answers as to
from grupo.config.option_hints.option import LOGS, PLACEMENT, missing, neutral, rounded_up
from grupo.config.option_hints.option import OtherOption as Option

ROLLOUT = "actor_rollout_ref.rollout."
V1 = "trainer.v1."
ASYNC = "async_training."

RUN = (
    Option("trainer.total_epochs", to.STEPS, "30", to.STEPS_OF_EPOCHS, "100"),
    Option("trainer.total_training_steps", to.STEPS, "None", example="100"),
    Option("trainer.save_freq", to.SAVE_EVERY, "-1", example="20"),
    Option("trainer.test_freq", to.EVAL_EVERY, "-1", example="5"),
    Option("trainer.logger", "--wandb", "console, wandb", "or --tensorboard, --trackio"),
    Option("trainer.default_local_dir", to.RUN, "", example="runs/new"),
    *neutral(LOGS, "trainer.project_name", "trainer.experiment_name", "trainer.rollout_data_dir",
             "trainer.log_val_generations", "trainer.validation_data_dir"),
    *neutral(PLACEMENT, "trainer.n_gpus_per_node", "trainer.nnodes", "trainer.device",
             "trainer.balance_batch", "trainer.default_hdfs_dir", "trainer.esi_redundant_time",
             "trainer.ray_wait_register_center_timeout", "trainer.use_legacy_worker_impl"),
    *neutral("`grupo resume RUN` continues a run", "trainer.resume_mode",
             "trainer.resume_from_path", "trainer.del_local_ckpt_after_load"),
    Option("trainer.max_actor_ckpt_to_keep", to.KEEP, "null", example="2"),
    *neutral("a run is evaluated before and after training", "trainer.val_before_train",
             "trainer.max_critic_ckpt_to_keep", "trainer.val_only", "trainer.critic_warmup"),
)  # fmt: skip
ASYNCHRONOUS = (
    Option(f"{V1}trainer_mode", to.STALENESS, "sync",
           "sync is 0; of colocate_async and separate_async it is max_off_policy_threshold", "8"),
    Option(f"{V1}sampler.max_off_policy_threshold", to.STALENESS, "8",
           "of the modes colocate_async and separate_async"),
    *missing("no group is dropped: generation waits for the update",
             f"{V1}sampler.max_off_policy_strategy"),
    *missing("a failed rollout is dropped and counted", f"{V1}sampler.sync_refill_failed_groups"),
    *missing("a curriculum is a component: method.curriculum", f"{V1}sampler.custom_sampler.*",
             f"{V1}sampler.sampler_kwargs*"),
    *neutral("generation runs ahead as far as --max-staleness allows", "trainer.use_v1",
             f"{V1}sync*", f"{V1}colocate_async.*", f"{V1}separate_async.*", "transfer_queue.*"),
    Option(f"{ASYNC}staleness_threshold", to.STALENESS, "0.1",
           "of the fully asynchronous trainer: a fraction of a step, rounded up", "1", rounded_up),
    Option(f"{ASYNC}trigger_parameter_sync_step", to.MINIBATCHES, "4",
           "a step is what is trained between two syncs of the weights", "4"),
    Option(f"{ASYNC}require_batches", to.MINIBATCHES, "1",
           "minibatches is trigger_parameter_sync_step x require_batches", "4"),
    Option("rollout.total_rollout_steps", to.STEPS, "100",
           "it counts prompts: steps is total_rollout_steps / prompts_per_step", "100"),
    *neutral("generation runs ahead as far as --max-staleness allows", f"{ASYNC}partial_rollout",
             f"{ASYNC}*dynamic_*", f"{ASYNC}concurrent_samples_per_replica",
             f"{ASYNC}use_trainer_do_validate", f"{ASYNC}use_dynamic_resource_scheduling"),
    *neutral(PLACEMENT, "rollout.nnodes", "rollout.n_gpus_per_node"),
)  # fmt: skip
REWARD = (
    Option("reward.custom_reward_function.path", to.REWARD, "None", example="rewards.py:correct"),
    Option("reward.custom_reward_function.name", to.REWARD, "compute_score",
           example="rewards.py:correct"),
    *(
        option
        for place in ("reward.reward_kwargs", "reward_model.reward_kwargs")
        for option in (
            Option(f"{place}.overlong_buffer_cfg.len", to.OVERLONG, "None", example="64"),
            Option(f"{place}.overlong_buffer_cfg.enable", to.OVERLONG, "False", example="64"),
            *missing("a reward is a function: --reward rewards.py:correct",
                     f"{place}.overlong_buffer_cfg.penalty_factor"),
            *neutral(LOGS, f"{place}.overlong_buffer_cfg.log"),
            *neutral("the limit is policy.max_new_tokens", f"{place}.max_resp_len"),
        )
    ),
    *missing("a reward is a function: --reward rewards.py:correct", "reward.reward_manager.*",
             "reward.reward_model.enable", "reward.reward_model.model_path",
             "reward_model.reward_loop_*"),
    *missing("a sandbox for code is a tool of the environment: docs/agents.md",
             "sandbox_fusion.url", "reward.sandbox_fusion.url"),
    *neutral("a reward runs in a thread of the process; models that score: docs/judges.md",
             "reward.num_workers", "reward.reward_model.*", "reward_model.num_workers",
             "reward_model.enable_resource_pool", "reward_model.n_gpus_per_node",
             "reward_model.nnodes", "reward_model.rollout.*", "reward_model.model.*",
             "sandbox_fusion.*", "reward.sandbox_fusion.*"),
)  # fmt: skip
OTHER_SECTIONS = (
    *missing("a teacher is an auxiliary model: docs/methods/opd.md", "distillation.*"),
    *missing("grupo samples from the policy's own distribution", f"{ROLLOUT}ignore_eos"),
    *missing("log-probabilities are recomputed with the policy's own router and weights",
             "actor_rollout_ref.ref.router_replay.*", f"{ROLLOUT}enable_rollout_routing_replay"),
    *missing("no layers for several tokens at once are trained", "actor_rollout_ref.model.mtp.*"),
    *neutral("options of a vLLM server: Vllm(server_options=…)", f"{ROLLOUT}seed",
             f"{ROLLOUT}full_determinism", f"{ROLLOUT}cudagraph_capture_sizes",
             f"{ROLLOUT}logprobs_mode", f"{ROLLOUT}scheduling_policy", f"{ROLLOUT}mtp",
             f"{ROLLOUT}skip_tokenizer_init", f"{ROLLOUT}quantization*", f"{ROLLOUT}qat",
             f"{ROLLOUT}moe_load_balance_metrics_interval"),
    *missing("no rollout is generated in excess", f"{ROLLOUT}over_sample_rate"),
    *neutral(LOGS, f"{ROLLOUT}trace.*", f"{ROLLOUT}prometheus.*"),
    *neutral(PLACEMENT, f"{ROLLOUT}nnodes", f"{ROLLOUT}n_gpus_per_node",
             f"{ROLLOUT}disaggregation.*"),
    *neutral("a step is always computed", "skip.*"),
)  # fmt: skip
