"""How questions and answers look on the wire: OpenAI's chat completions, and Gemini's generateContent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """What a request asks, whatever its dialect. reply(answer, ending, served model) -> the body of the reply."""

    model: str
    text: str
    audio: str | None  # base64
    schema: dict[str, Any] | None
    settings: dict[str, Any]
    reply: Callable[[str, str | None, str], dict[str, Any]]


def read(path: str, body: dict[str, Any]) -> Question:
    """The question in a request's body. The clip must stand ahead of the words."""
    return _read_gemini(path, body) if path.startswith("/v1beta/") else _read_openai(body)


def _read_openai(body: dict[str, Any]) -> Question:
    content, audio = body["messages"][-1]["content"], None
    if not isinstance(content, str):
        assert [part["type"] for part in content] == ["input_audio", "text"], content
        assert content[0]["input_audio"]["format"] == "wav"
        audio, content = content[0]["input_audio"]["data"], content[1]["text"]
    form = body.get("response_format")
    schema = form["json_schema"]["schema"] if form else None
    settings = {key: value for key, value in body.items() if key != "messages"}
    return Question(body["model"], content, audio, schema, settings, _openai_reply)


def _openai_reply(answer: str, ending: str | None, served: str) -> dict[str, Any]:
    reason = {"filtered": "content_filter", "length": "length", "length_empty": "length", "odd_finish": "tool_calls"}
    silent = ending in ("filtered", "refused", "empty", "length_empty")
    message: dict[str, Any] = {"role": "assistant", "content": None if silent else answer, "refusal": None}
    if ending == "blank":
        message["content"] = " \n"
    if ending == "refused":
        message["refusal"] = "I would rather not."
    choice = {"index": 0, "message": message, "finish_reason": reason.get(ending or "", "stop")}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": served,
        "choices": [] if ending == "no_choices" else [choice],
        "usage": {"prompt_tokens": 20, "completion_tokens": len(answer.split()), "total_tokens": 20},
    }  # fmt: skip


def _read_gemini(path: str, body: dict[str, Any]) -> Question:
    model = path.removeprefix("/v1beta/models/").removesuffix(":generateContent")
    parts = body["contents"][-1]["parts"]
    audio = None
    if len(parts) == 2:
        clip = parts[0].get("inlineData") or parts[0]["inline_data"]
        assert (clip.get("mimeType") or clip["mime_type"]) == "audio/wav"
        audio = clip["data"].replace("-", "+").replace("_", "/")
    settings = body["generationConfig"]
    schema = settings.get("responseJsonSchema")
    return Question(model, parts[-1]["text"], audio, schema, settings, _gemini_reply)


def _gemini_reply(answer: str, ending: str | None, served: str) -> dict[str, Any]:
    usage = {"promptTokenCount": 20, "candidatesTokenCount": len(answer.split()), "thoughtsTokenCount": 3}
    body: dict[str, Any] = {"modelVersion": served, "usageMetadata": usage}
    if ending == "prompt_filtered":
        return {**body, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    if ending == "no_choices":
        return body
    reason = {"filtered": "SAFETY", "length": "MAX_TOKENS", "length_empty": "MAX_TOKENS", "odd_finish": "OTHER"}
    candidate: dict[str, Any] = {"index": 0, "finishReason": reason.get(ending or "", "STOP")}
    if ending == "length_empty":
        candidate["content"] = {"role": "model", "parts": [{"text": "Let me think about it", "thought": True}]}
    elif ending == "empty":
        candidate["content"] = {"role": "model"}
    elif ending != "filtered":
        candidate["content"] = {"role": "model", "parts": [{"text": " \n" if ending == "blank" else answer}]}
    return {**body, "candidates": [candidate]}
