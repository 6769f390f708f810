# The options of verl's examples/reinforce_plus_plus_trainer/run_qwen2-7b_math_rf_baseline.sh.
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=reinforce_plus_plus_baseline \
    data.train_files=train.parquet data.val_files=held.parquet \
    data.train_batch_size=64 data.max_response_length=300 \
    actor_rollout_ref.model.path=owner/seven-billion \
    actor_rollout_ref.actor.optim.lr=3e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.kl_loss_coef=0.003 \
    actor_rollout_ref.actor.kl_loss_type=mse \
    actor_rollout_ref.rollout.n=3 \
    trainer.total_training_steps=20
