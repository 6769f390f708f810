"""The options of TRL's scripts/grpo.py: everything comes from the command line."""

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser, get_peft_config


def main(script, settings, model):
    dataset = load_dataset(script.dataset_name, name=script.dataset_config)
    trainer = GRPOTrainer(
        model=model.model_name_or_path,
        reward_funcs=script.reward_funcs,
        args=settings,
        train_dataset=dataset[script.dataset_train_split],
        peft_config=get_peft_config(model),
    )
    trainer.train()


if __name__ == "__main__":
    main(*TrlParser((ScriptArguments, GRPOConfig, ModelConfig)).parse_args_and_config())
