# The options of verl's examples/tuning/0.5b/qwen2-0.5b_grpo-lora_1_h100_fsdp_vllm.sh.
DAY=$(date +%d)
MODEL=owner/half-billion
devices=2
per_device=8
batch=$(( devices * per_device ))

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    trainer.val_before_train=False \
    data.train_files=train.parquet \
    data.val_files=held.parquet \
    data.train_batch_size=${batch} \
    data.val_batch_size=${batch} \
    data.max_prompt_length=256 \
    data.max_response_length=512 \
    data.shuffle=False \
    actor_rollout_ref.model.path=$MODEL \
    actor_rollout_ref.model.lora_rank=24 \
    actor_rollout_ref.model.lora_alpha=12 \
    actor_rollout_ref.model.target_modules=all-linear \
    actor_rollout_ref.actor.optim.lr=4e-5 \
    actor_rollout_ref.actor.ppo_mini_batch_size=${batch} \
    actor_rollout_ref.actor.fsdp_config.fsdp_size=-1 \
    actor_rollout_ref.rollout.n=4 \
    actor_rollout_ref.rollout.max_num_seqs=64 \
    actor_rollout_ref.rollout.max_model_len=768 \
    actor_rollout_ref.rollout.load_format=safetensors \
    actor_rollout_ref.rollout.layered_summon=True \
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=1 \
    actor_rollout_ref.actor.entropy_coeff=0.002 \
    trainer.logger=console \
    trainer.experiment_name=run-${DAY} \
    trainer.total_epochs=1 2>&1 | tee ${MODEL}.log
