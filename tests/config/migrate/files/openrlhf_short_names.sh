# The options of OpenRLHF's train_grpo_ray_hybrid_engine.sh before its options were grouped.
python3 -m openrlhf.cli.train_ppo_ray \
   --pretrain owner/model --prompt_data owner/prompts --input_key problem --label_key answer \
   --advantage_estimator group_norm --init_kl_coef 0.003 --use_kl_loss --kl_estimator k3 \
   --n_samples_per_prompt 8 --rollout_batch_size 16 --train_batch_size 128 \
   --generate_max_len 600 --actor_learning_rate 5e-7 --max_epochs 1 --num_episodes 2 \
   --micro_train_batch_size 2 --zero_stage 2 --bf16 --gradient_checkpointing --packing_samples \
   --use_wandb token
