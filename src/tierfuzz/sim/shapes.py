"""Parts of replies that every endpoint shares: accounting, finish reasons, namespaces, log-probabilities."""

from __future__ import annotations

from typing import Any

from tierfuzz.model.request import Reply, Request
from tierfuzz.sim.serving import Served
from tierfuzz.sim.state import STORAGE_CLASS, SimWorker

WEIGHT_VERSION = "default"


def details(worker: SimWorker, reply: Reply) -> dict[str, Any] | None:
    """`cached_tokens_details`: None when no tier counted anything (reference 2.1)."""
    split = reply.split
    if split is None:
        return None
    attached = worker.storage_backend is not None
    found: dict[str, Any] = {"device": split.device, "host": split.host}
    if split.storage or attached:
        found["storage"] = split.storage
    if attached:
        found["storage_backend"] = STORAGE_CLASS
    return found


def finish_reason(served: Served) -> dict[str, Any] | None:
    """The native finish reason; None while more outputs follow."""
    reply = served.reply
    if served.partial:
        return None
    if reply.finish == "length":
        return {"type": "length", "length": served.requested}
    reason: dict[str, Any] = {"type": "abort", "message": reply.abort_message}
    if reply.prompt_tokens is not None:
        reason |= {"status_code": None, "err_type": None}
    return reason


def meta_info(worker: SimWorker, served: Served) -> dict[str, Any]:
    """`meta_info` of /generate; a request that never started has no counts (reference 2.1, 6.5, 6.6)."""
    reply = served.reply
    meta: dict[str, Any] = {"id": reply.rid, "finish_reason": finish_reason(served)}
    if reply.prompt_tokens is None:
        meta |= {"weight_version": WEIGHT_VERSION, "completion_tokens": 0}
    else:
        meta |= {
            "prompt_tokens": reply.prompt_tokens,
            "weight_version": WEIGHT_VERSION,
            "num_retractions": reply.retractions,
            "reasoning_tokens": 0,
            "completion_tokens": len(reply.output_ids),
            "cached_tokens": reply.cached_tokens,
            "cached_tokens_details": details(worker, reply),
        }
    meta["e2e_latency"] = served.seconds
    return meta


def logprobs(request: Request, reply: Reply) -> dict[str, Any]:
    """Log-probabilities, each a function of its token alone: the tokens already tell the content."""
    start = request.logprob_start if request.logprob_start is not None else len(request.tokens)
    prompt = [[_logprob(token), token, None] for token in request.tokens[start:]]
    if prompt:
        prompt[0][0] = None  # nothing precedes it that was looked at
    outputs = [[_logprob(token), token, None] for token in reply.output_ids]
    return {"input_token_logprobs": prompt, "output_token_logprobs": outputs}


def top_logprobs(reply: Reply, number: int) -> dict[str, Any]:
    """Of the first output several tokens, a function of the contents; of the others the token alone."""
    first = [[_likelihood(reply.state, token), token, None] for token in range(1, number + 1)]
    others = [[[_logprob(token), token, None]] for token in reply.output_ids[1:]]
    return {"output_top_logprobs": [first, *others] if reply.output_ids else []}


def _likelihood(state: int, token: int) -> float:
    """Between -4 and 0, unlike for every state."""
    return -(hash((state, token)) % 4000) / 1000


def _logprob(token: int) -> float:
    return -(1 + token % 97) / 100


def namespace(worker: SimWorker, extra_key: str | None, salt: str | None, openai: bool) -> str:
    """The radix key's namespace (reference 2.4, 8): concatenated in 0.5.17, two parts in 0.5.23."""
    extra, salt = extra_key or "", salt or ""
    if not worker.engine.rules.unified:
        return salt + extra if openai else extra
    return f"{salt}\0{extra}" if salt else extra
