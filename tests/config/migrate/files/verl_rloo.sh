# The options of verl's examples/rloo_trainer/run_qwen2-7b.sh.
PYTHONPATH=. python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=rloo \
    data.train_files=train.parquet data.val_files=held.parquet \
    data.train_batch_size=32 data.max_prompt_length=200 data.max_response_length=400 \
    actor_rollout_ref.model.path=owner/seven-billion \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=16 \
    actor_rollout_ref.actor.use_kl_loss=False \
    actor_rollout_ref.rollout.n=5 \
    algorithm.use_kl_in_reward=True \
    algorithm.kl_penalty=kl \
    algorithm.kl_ctrl.kl_coef=0.004 \
    trainer.total_epochs=15
