#!/bin/bash
# The options of OpenRLHF's train_reinforce_baseline_hybrid_engine.sh.
MODEL="owner/thinker"
DATA="owner/maths"
ROLLOUT=(
   --actor.model_name_or_path ${MODEL}
   --ckpt.output_dir out
   --ckpt.save_steps 12
   --ckpt.save_hf
   --data.prompt_dataset ${DATA}
   --data.input_key prompt
   --data.label_key solution
   --rollout.max_new_tokens 2000
   --data.apply_chat_template
   --ds.packing_samples
   --rollout.batch_size 32
   --rollout.n_samples_per_prompt 4
   --train.batch_size 128
   --algo.dynamic_filtering_enable
   --algo.dynamic_filtering_range 0.0 1.0
   --train.dynamic_batch_enable
   --train.max_tokens_per_gpu 9000
   --data.max_samples 6400
   --train.max_epochs 1
)
OBJECTIVE=(
   --algo.advantage.estimator reinforce_baseline
   --actor.adam.lr 4e-7
   # --critic.adam.lr 9e-6
   --algo.kl.init_coef 2e-5
   --algo.kl.use_loss
   --algo.kl.estimator k2
   --vllm.num_engines 2
   --ref.num_nodes 1
   --actor.gradient_checkpointing_enable
   --eval.steps -1
)
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray ${ROLLOUT[@]} ${OBJECTIVE[@]}
