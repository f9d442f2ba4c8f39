"""Tiny Qwen2-Audio and Qwen2 models with random weights, built in a second: real engines' real paths, no download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
TEXT = ("Write a short story about an imaginary person for the speaker, and name three hobbies they may enjoy. "
        '{"occupation": ["teacher"], "activity": ["chess", "hiking"]} one two three four five.')  # fmt: skip


CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT_PART = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip


def build(folder: Path, seed: int = 0) -> Path:
    """Write a tiny Qwen2-Audio into `folder`, and return it."""
    from safetensors.torch import load_file, save_file
    from transformers import (
        Qwen2AudioConfig,
        Qwen2AudioForConditionalGeneration,
        Qwen2AudioProcessor,
        WhisperFeatureExtractor,
    )

    tokenizer = _tokenizer()
    Qwen2AudioProcessor(WhisperFeatureExtractor(feature_size=128), tokenizer).save_pretrained(folder)
    audio_token = tokenizer.convert_tokens_to_ids("<|AUDIO|>")
    config = Qwen2AudioConfig(
        audio_config={
            "num_mel_bins": 128, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 128,
            "d_model": 64,
        },
        text_config={"model_type": "qwen2", "vocab_size": len(tokenizer), **TEXT_PART},
        audio_token_index=audio_token,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    _save(Qwen2AudioForConditionalGeneration, config, folder, seed)
    path = folder / "model.safetensors"
    tensors = {  # transformers 5.19 doubles a part of the keys, which vLLM refuses
        name.replace("language_model.model.model.", "language_model.model."): tensor
        for name, tensor in load_file(path).items()
    }
    save_file(tensors, path, metadata={"format": "pt"})
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert written["audio_token_index"] == audio_token
    return folder


def build_text(folder: Path, seed: int = 0) -> Path:
    """Write a tiny Qwen2, a model of text alone, into `folder`, and return it."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = _tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, **TEXT_PART
    )
    _save(Qwen2ForCausalLM, config, folder, seed)
    return folder


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([TEXT] * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def _save(kind: Any, config: Any, folder: Path, seed: int) -> None:
    import torch

    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:  # scaled so that what is heard reaches the output
                weights.normal_(0, 1 / weights[0].numel() ** 0.5)
    model.generation_config.eos_token_id = config.eos_token_id
    model.save_pretrained(folder)


if __name__ == "__main__":
    import sys

    print(build(Path(sys.argv[1])))
