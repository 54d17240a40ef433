"""curl.sh: the program as a chain of cURL calls with concrete token ids, for a look by hand."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tierfuzz.evidence import Evidence
from tierfuzz.program import Attach, Burst, ClearStorage, Detach, Flush, Hold, Program, Release, Restart
from tierfuzz.report.handover.launch import key_of, launches, used_workers
from tierfuzz.report.handover.steps import STORAGE_PATH, attach_body, holds_copies
from tierfuzz.report.handover.story import Chapter, chapters
from tierfuzz.report.handover.words import operation_text
from tierfuzz.runevents import RequestSent, RestSought
from tierfuzz.worker.calls import Call, request_body
from tierfuzz.worker.http import PROBE_BODY

HEAD = """#!/usr/bin/env bash
# The requests of the failing run, one after another, with the accounting of each reply. It judges nothing:
# repro.py does. Start the workers first (launch.txt), or name yours in the variables below.
set -uo pipefail
{variables}
KEY=${{TIERFUZZ_API_KEY:-{key}}}

ask() {{
    curl -sS -X "$1" "$2" -H 'Content-Type: application/json' -H "Authorization: Bearer $KEY" "${{@:3}}"
}}
# generate URL NAME BODY: the accounting of one request
generate() {{
    local told='"(prompt|cached)_tokens":[0-9]+|"cached_tokens_details":(null|\\{{[^}}]*\\}})'
    printf '%s: %s\\n' "$2" "$(ask POST "$1/generate" -d "$3" | grep -oE "$told" | tr '\\n' ' ')"
}}
# rest URL: wait until nothing is in flight; the worker checks that before it refuses the policy
rest() {{
    for _ in $(seq 400); do
        ask PUT "$1/hicache/storage-backend" -d '{probe}' | grep -q 'Invalid hicache_write_policy' && return
        sleep 0.025
    done
    echo "no rest within the bound"
}}
flush() {{ rest "$1"; ask POST "$1/flush_cache?timeout=5"; echo; rest "$1"; }}

"""


def curl_text(program: Program, evidence: Evidence) -> str:
    """The script; its requests are those that the run sent, with the outputs that it saw in their prompts."""
    workers = list(zip(used_workers(program), launches(program), strict=True))
    variables = "\n".join(f"W{worker}=${{W{worker}:-{launch.base_url}}}" for worker, launch in workers)
    head = HEAD.format(variables=variables, key=key_of(program) or "none", probe=PROBE_BODY.decode().strip())
    start = "".join(f'flush "$W{worker}"\n' for worker, _ in workers)
    if not program.fleet.starts_empty:
        start = (
            "# The workers may not be emptied: run this on others, or what the failing run left is served.\n"
        )
    body = [line for chapter in chapters(evidence) for line in _chapter(chapter, program)]
    end = [f'rest "$W{worker}"' for worker, _ in workers]
    return head + start + "\n".join([*body, "", *end]) + "\n"


def _chapter(chapter: Chapter, program: Program) -> Iterator[str]:
    operation = chapter.operation
    if operation is None:
        return
    yield f"\n# {operation.id}: {operation_text(operation)}"
    rested = [event.worker for event in chapter.events if isinstance(event, RestSought)]
    yield from (f'rest "$W{worker}"' for worker in dict.fromkeys(rested) if chapter.sent)
    if isinstance(operation, Burst):
        yield from (f"{_request(sent)} &" for sent in chapter.sent)
        yield from (line for sent in chapter.sent for line in _abort(sent))
        yield "wait"
        return
    if chapter.sent:
        for sent in chapter.sent:
            aborts = list(_abort(sent))
            yield from ([f"{_request(sent)} &", *aborts, "wait"] if aborts else [_request(sent)])
        return
    yield _control(program, chapter)


def _request(sent: RequestSent) -> str:
    request = sent.request
    call = Call(request.id, sent.tokens, request.outputs, request.namespace, request.logprob_start)
    return f"generate \"$W{request.worker}\" {request.id} '{request_body(call).decode()}'"


def _abort(sent: RequestSent) -> Iterator[str]:
    request = sent.request
    if request.abort_after_s is not None:
        body = msgspec.json.encode({"rid": request.id}).decode()
        yield f"sleep {request.abort_after_s:g}; ask POST \"$W{request.worker}/abort_request\" -d '{body}'"


def _control(program: Program, chapter: Chapter) -> str:
    operation = chapter.operation
    assert operation is not None
    assert not isinstance(operation, Burst)
    url = f'"$W{operation.worker}'
    if isinstance(operation, Hold | Release) and holds_copies(program.fleet):
        copies = "hold" if isinstance(operation, Hold) else "release"
        return f'ask POST {url}/sim/control" -d \'{{"copies":"{copies}"}}\'; echo'
    if isinstance(operation, Flush):
        return f'flush {url}"'
    if isinstance(operation, Restart):
        return f'echo "{operation.id}: restart the worker here; it is flushed instead"; flush {url}"'
    if isinstance(operation, ClearStorage):
        return f'rest {url}"; ask POST {url}{STORAGE_PATH}/clear"; echo'
    if isinstance(operation, Detach):
        return f'rest {url}"; ask DELETE {url}{STORAGE_PATH}"; echo'
    if isinstance(operation, Attach):
        body = msgspec.json.encode(attach_body(operation, program.fleet)).decode()
        return f"rest {url}\"; ask PUT {url}{STORAGE_PATH}\" -d '{body}'; echo"
    if isinstance(operation, Hold | Release):
        return ":  # nothing is held back here"
    return f'rest {url}"'
