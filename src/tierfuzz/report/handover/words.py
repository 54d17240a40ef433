"""Operations, prompts, forecasts and replies in a few words each."""

from __future__ import annotations

from tierfuzz.forecast.contract import Forecast
from tierfuzz.observation import Observation, TierSplit
from tierfuzz.program import Attach, Burst, Fill, Generate, Operation
from tierfuzz.prompts import Piece, described

KIND_OF_TAG = {"clear_storage": "clear storage", "attach": "attach storage", "detach": "detach storage"}


def prompt_text(pieces: tuple[Piece, ...]) -> str:
    """The pieces of a prompt; one may have none."""
    return described(pieces) or "(empty)"


def request_text(request: Generate) -> str:
    """Role, prompt, outputs and what else is special about a request."""
    parts = [request.role, prompt_text(request.prompt), f"+{request.outputs} outputs"]
    parts += [f"in namespace {request.namespace!r}"] if request.namespace else []
    parts += [f"logprobs from {request.logprob_start}"] if request.logprob_start is not None else []
    parts += [f"aborted after {request.abort_after_s:g} s"] if request.abort_after_s is not None else []
    return " ".join(parts)


def operation_text(operation: Operation) -> str:
    """What an operation does, and to which worker."""
    if isinstance(operation, Burst):
        members = "; ".join(
            f"{request.id} {request_text(request)} on worker {request.worker}"
            for request in operation.requests
        )
        return f"together: {members}"
    where = f"on worker {operation.worker}"
    if isinstance(operation, Generate):
        return f"{request_text(operation)} {where}"
    if isinstance(operation, Fill):
        until = f", until {operation.target} is off device" if operation.target else ""
        return f"fill {operation.share:g} of the device pool from {operation.stream}{until} {where}"
    tag = str(operation.__struct_config__.tag)
    policy = f" as {operation.policy}" if isinstance(operation, Attach) else ""
    return f"{KIND_OF_TAG.get(tag, tag)}{policy} {where}"


def expected_text(forecast: Forecast, page: int) -> str:
    """What a forecast asks of a reply, in tokens."""
    if forecast.host_only:
        return f"device 0, host at least {forecast.host_only * page}"
    least = f"at least {forecast.held * page}, " if forecast.held else ""
    return f"{least}at most {forecast.most * page} cached"


def reply_text(seen: Observation) -> str:
    """The accounting of a reply, in tokens."""
    if seen.status == "failed":
        return f"failed: {seen.error.splitlines()[0] if seen.error else 'no reply'}"
    if seen.prompt_tokens is None:
        return "aborted before it started"
    split = seen.split or TierSplit()
    told = f"cached {seen.cached_tokens} = device {split.device} + host {split.host}"
    told += f" + storage {split.storage}" if split.storage else ""
    return told + (" (aborted)" if seen.status == "aborted" else "")
