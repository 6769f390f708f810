# The options of OpenRLHF's train_dapo_ray_hybrid_engine.sh.
python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_nodes 1 --actor.num_nodes 1 --actor.num_gpus_per_node 4 \
   --vllm.num_engines 4 --train.colocate_all \
   --algo.kl.init_coef 0.0 \
   --algo.advantage.estimator group_norm \
   --algo.dynamic_filtering_enable \
   --actor.eps_clip_low_high 0.2 0.3 \
   --actor.model_name_or_path owner/eight-billion \
   --reward.remote_url my_reward.py \
   --ckpt.output_dir out --ckpt.save_steps 30 \
   --train.micro_batch_size 4 --train.batch_size 256 \
   --rollout.batch_size 64 --rollout.n_samples_per_prompt 8 \
   --train.max_epochs 1 --rollout.max_new_tokens 900 \
   --data.max_len 2048 \
   --data.max_samples 12800 --ds.zero_stage 3 --ds.param_dtype bf16 \
   --actor.adam.lr 6e-7 \
   --data.prompt_dataset owner/prompts --data.input_key messages \
   --data.apply_chat_template --actor.gradient_checkpointing_enable
