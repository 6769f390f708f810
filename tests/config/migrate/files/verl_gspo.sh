# The options of verl's examples/gspo_trainer/test_gspo_3b_math.sh that concern the objective.
args=(
    algorithm.adv_estimator=grpo
    actor_rollout_ref.actor.policy_loss.loss_mode=gspo
    actor_rollout_ref.actor.clip_ratio_low=0.0002
    actor_rollout_ref.actor.clip_ratio_high=0.0005
    actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean
    actor_rollout_ref.rollout.n=10
    actor_rollout_ref.model.path=owner/three-billion
    data.train_files="['a.parquet']"
    data.val_files="['b.parquet']"
    data.train_batch_size=40
    data.max_response_length=900
    actor_rollout_ref.actor.ppo_mini_batch_size=10
    trainer.total_training_steps=30
    custom_reward_function.path=score.py
    custom_reward_function.name=score_answer
)
PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo "${args[@]}"
