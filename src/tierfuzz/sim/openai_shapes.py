"""Response objects of the OpenAI endpoints, whole and streamed (reference 2.2)."""

from __future__ import annotations

from typing import Any, Literal

from tierfuzz.model.request import Reply, Request
from tierfuzz.prompts import text_of
from tierfuzz.sim.serving import Served
from tierfuzz.sim.shapes import WEIGHT_VERSION
from tierfuzz.sim.state import SimWorker


class Shape:
    """Builds the objects of one response; `kind` is the `object` of a whole one."""

    def __init__(self, kind: Literal["text_completion", "chat.completion"], worker: SimWorker) -> None:
        self._chat = kind == "chat.completion"
        self._kind = kind
        self._worker = worker
        self._created = int(worker.clock.wall())

    def whole(self, model: str, served: list[Served]) -> dict[str, Any]:
        """The response without usage; one choice a prompt."""
        head = self._head(model, served[0].reply.rid, self._kind)
        choices = [self._choice(i, one) for i, one in enumerate(served)]
        return head | {"choices": choices, "metadata": {"weight_version": WEIGHT_VERSION}}

    def chunk(self, model: str, rid: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """One chunk of a stream."""
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return self._head(model, rid, kind) | {"choices": choices}

    def opening(self, model: str, rid: str) -> list[dict[str, Any]]:
        """Chunks before any content: a chat names its role first."""
        if not self._chat:
            return []
        return [self.chunk(model, rid, [self._delta({"role": "assistant", "content": ""}, None)])]

    def content(self, model: str, served: Served, known: int) -> list[dict[str, Any]]:
        """Chunks for the outputs beyond the first `known`, and for the end."""
        outputs = served.reply.output_ids
        text = text_of(outputs[known:])
        text = f" {text}" if known and text else text
        reason = None if served.partial else served.reply.finish
        if not self._chat:
            choice = {"index": 0, "text": text, "logprobs": None}
            choices = [choice | {"finish_reason": reason, "matched_stop": None}]
            return [self.chunk(model, served.reply.rid, choices)] if text or reason else []
        deltas = [self._delta({"content": text}, None)] if text else []
        deltas += [self._delta({}, reason)] if reason else []
        return [self.chunk(model, served.reply.rid, [delta]) for delta in deltas]

    def _head(self, model: str, rid: str, kind: str) -> dict[str, Any]:
        name = model or self._worker.options.served_model_name
        return {"id": rid, "object": kind, "created": self._created, "model": name}

    def _choice(self, index: int, served: Served) -> dict[str, Any]:
        text = text_of(served.reply.output_ids)
        body: dict[str, Any] = {"text": text}
        if self._chat:
            message = {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": None}
            body = {"message": message}
        end = {"logprobs": None, "finish_reason": served.reply.finish, "matched_stop": None}
        return {"index": index} | body | end

    @staticmethod
    def _delta(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        end = {"logprobs": None, "finish_reason": reason, "matched_stop": None}
        return {"index": 0, "delta": delta} | end


def usage(worker: SimWorker, requests: list[Request], replies: list[Reply]) -> dict[str, Any]:
    """Token counts; cached ones only with --enable-cache-report, and only when there are some."""
    prompt = sum(len(request.tokens) for request in requests)
    outputs = sum(len(reply.output_ids) for reply in replies)
    cached = sum(reply.cached_tokens or 0 for reply in replies)
    shown = {"cached_tokens": cached} if worker.options.cache_report and cached else None
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + outputs,
        "completion_tokens": outputs,
        "prompt_tokens_details": shown,
        "reasoning_tokens": 0,
    }
