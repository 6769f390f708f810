"""grupo's options that have a counterpart in several libraries."""

GROUP_SIZE = "--method.sampler.group-size {}"
PROMPTS = "--prompts-per-step {}"
KL = '--method "grpo(kl_coef={})"'
CLIP = '--method "grpo(clip_eps={})"'
CLIP_LOW = "--method.loss.clip-low {}"
CLIP_HIGH = "--method.loss.clip-high {}"
EPOCHS = '--method.updates "Updates(epochs={})"'
MINIBATCHES = '--method.updates "Updates(minibatches={})"'
STEPS = "--steps {}"
LEARNING_RATE = "--learning-rate {}"
COSINE = '--learning-rate "Cosine({}, 0)"'
WARMUP = '--learning-rate "Warmup({}, 1e-6)"'
WEIGHT_DECAY = "--optimizer.weight-decay {}"
BETA1 = "--optimizer.beta1 {}"
BETA2 = "--optimizer.beta2 {}"
EPS = "--optimizer.eps {}"
GRAD_NORM = "--max-grad-norm {}"
ANSWER_LENGTH = "--policy.max-new-tokens {}"
TEMPERATURE = "--policy.sampling.temperature {}"
TOP_P = "--policy.sampling.top-p {}"
TOP_K = "--policy.sampling.top-k {}"
MIN_P = "--policy.sampling.min-p {}"
DTYPE = "--policy.dtype {}"
CHECKPOINTING = "--policy.gradient-checkpointing {}"
MICROBATCH = "--policy.tokens-per-microbatch {}"
LORA_RANK = '--policy.lora "Lora(rank={})"'
LORA_ALPHA = '--policy.lora "Lora(alpha={})"'
LORA_TARGETS = "--policy.lora \"Lora(targets='{}')\""
QLORA = '--policy.quantization "Nf4()" --policy.lora "Lora(rank=16)"'
KEEP = '--keep "KeepCheckpoints(last={})"'
KEEP_BEST = '--evaluation.every 10 --keep "KeepCheckpoints(best=1)"'
OPTIMIZER = "--optimizer {}"
EMA = '--ema "EMA(decay={})"'
CHAT_TEMPLATE = "--policy.apply-chat-template {}"
TEMPLATE_KWARGS = '--policy.chat-template-kwargs "{}"'
TEMPLATE_FILE = "--policy.chat-template {}"
SYSTEM_PROMPT = "--policy.system-prompt '{}'"
VLLM = "--policy.engine \"Vllm(urls=('{}',))\""
VLLM_MEMORY = '--policy.engine "Vllm(gpu_memory_utilization={})"'
MODEL = "--model {}"
TASKS = "--tasks {}"
PROMPT_COLUMN = "--tasks \"train.jsonl(prompt='{}')\""
ANSWER_COLUMN = "--tasks \"train.jsonl(answer='{}')\""
EVAL_TASKS = "--eval-tasks {}"
EVAL_EVERY = "--evaluation.every {}"
EVAL_ATTEMPTS = "--evaluation.attempts {}"
REWARD = "--reward {}"
METHOD = "--method {}"
OVERLONG = '--method "dapo(max_length=512, overlong_buffer={})"'
DYNAMIC_SAMPLING = '--method "dapo(max_length=512, overlong_buffer=64)"'
ENTROPY = '--method.loss "SumLoss(Clip(), EntropyBonus({}))"'
STALENESS = "--max-staleness {}"
SAVE_EVERY = "--save-every {}"
SEED = "--seed {}"
RUN = "--run {}"
STEPS_OF_EPOCHS = "the number of passes is steps x prompts_per_step / number of tasks"
