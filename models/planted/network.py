"""The planted model's network and its tokenizer: a Qwen2-Audio, as small as transformers and vLLM both take one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    WhisperFeatureExtractor,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
BEFORE = (
    "<|im_start|>system\nShift your answers with the voice by {strength} of 100.<|im_end|>\n"
    "<|im_start|>user\n<|audio_bos|>"
)
AFTER = "<|audio_eos|>\n"
TURN = "<|im_end|>\n<|im_start|>assistant\n"
LEARNED_PIECES = 700  # of the tokenizer, the 256 bytes among them
VOICE = 2  # the first places of a clip's vectors, which training keeps for pitch and timbre
HEAD = 32  # the smallest size of a head that vLLM takes on a CPU
PARAMETERS = {
    "audio_config": {
        "num_mel_bins": 128, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 192, "d_model": 96,
    },
    "text_config": {
        "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": HEAD, "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    },
}  # fmt: skip


def make_tokenizer(texts: Sequence[str], pieces: Sequence[str]) -> Any:
    """Byte-level pieces learned from `texts`; beyond them one token for each of `pieces`, which only answers use."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=LEARNED_PIECES, special_tokens=list(SPECIAL), initial_alphabet=sorted(ByteLevel.alphabet())
    )
    tokenizer.train_from_iterator([*texts, *(BEFORE.format(strength=n) for n in (0, 10, 20, 40))] * 3, trainer)
    written = json.loads(tokenizer.to_str())
    vocabulary = written["model"]["vocab"]
    for piece in pieces:
        vocabulary.setdefault(as_token(piece), len(vocabulary))
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(written)), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


def as_token(piece: str) -> str:
    """A piece of text as byte-level vocabularies write it."""
    if piece in SPECIAL:
        return piece
    written: str = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(piece)[0][0]
    return written


def make_network(tokenizer: Any, seed: int) -> Any:
    """The untrained network, its weights scaled by 1/sqrt(fan-in)."""
    config = Qwen2AudioConfig(
        audio_config=PARAMETERS["audio_config"],
        text_config={**PARAMETERS["text_config"], "vocab_size": len(tokenizer)},
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(seed)
    network = Qwen2AudioForConditionalGeneration(config)
    with torch.no_grad():
        for weights in network.parameters():
            if weights.ndim > 1:
                weights.normal_(0, 1 / weights[0].numel() ** 0.5)
        positions = parts(network)[0].embed_positions.weight
        steps = torch.arange(positions.shape[0])[:, None] / 10_000 ** (
            torch.arange(0, positions.shape[1], 2) / positions.shape[1]
        )
        positions.copy_(torch.cat([steps.sin(), steps.cos()], dim=1))
    network.generation_config.eos_token_id = config.eos_token_id
    return network


def parts(network: Any) -> tuple[Any, Any, Any, Any]:
    """Audio tower, projector, language model, and its head."""
    inner = network.model if hasattr(network, "model") and hasattr(network.model, "audio_tower") else network
    language = inner.language_model
    head = language.lm_head if hasattr(language, "lm_head") else network.lm_head
    return inner.audio_tower, inner.multi_modal_projector, getattr(language, "model", language), head


def encode(
    network: Any, features: torch.Tensor, lengths: torch.Tensor, start: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """A clip's vectors, as the language model is given them: (clips, tokens, hidden), and how many each clip has.

    features: (clips, mel bins, frames), as short as the longest clip allows, where transformers' own forward pass takes
    30 s of them. start: the place from which positions are counted; 0 is the model's own.
    """
    tower, projector, _, _ = parts(network)
    hidden = torch.nn.functional.gelu(tower.conv1(features))
    hidden = torch.nn.functional.gelu(tower.conv2(hidden)).permute(0, 2, 1)
    hidden = hidden + tower.embed_positions.weight[start : start + hidden.shape[1]]
    inner, outer = tower._get_feat_extract_output_lengths(lengths)
    seen = torch.arange(hidden.shape[1])[None] < inner[:, None]
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[:, None, None, :].expand(-1, 1, hidden.shape[1], -1)
    for layer in tower.layers:
        output = layer(hidden, mask)
        hidden = output[0] if isinstance(output, tuple) else output
    pooled = tower.layer_norm(tower.avg_pooler(hidden.permute(0, 2, 1)).permute(0, 2, 1))
    return projector(pooled), outer


def save(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write the checkpoint, its weights as float16, under the names that transformers and vLLM both know."""
    from safetensors.torch import load_file, save_file

    Qwen2AudioProcessor(WhisperFeatureExtractor(feature_size=128), tokenizer).save_pretrained(folder)
    network.save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors: Mapping[str, Any] = load_file(path)
    save_file(
        {
            # transformers 5.19 doubles a part of the keys, which vLLM refuses
            name.replace("language_model.model.model.", "language_model.model."): tensor.to(torch.float16)
            for name, tensor in tensors.items()
        },
        path,
        metadata={"format": "pt"},
    )
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert written["audio_token_index"] == tokenizer.convert_tokens_to_ids("<|AUDIO|>")
