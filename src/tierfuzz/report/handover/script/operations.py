"""The operations of the program, in order."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from tierfuzz.report.handover.script.book import page_hashes
from tierfuzz.report.handover.script.run import Run, Step, told
from tierfuzz.report.handover.script.worker import Reply


class Program(Run):
    """A run that carries operations out."""

    # operations ------------------------------------------------------------------------------------
    def carry_out(self, step: Step) -> None:
        """One operation of the program."""
        print(f"{step['id']:6} {step['text']}")
        if step["do"] == "requests":
            self._requests(step)
        elif step["do"] == "fill":
            self._fill(step)
        else:
            self._control(step)

    def _requests(self, step: Step) -> None:
        for index in sorted({call["worker"] for call in step["calls"]}):
            calls = [call for call in step["calls"] if call["worker"] == index]
            if step["rest"]:
                self.rest(index)
            self.send(index, calls)
            if step["rest"] and len(step["calls"]) > 1:
                self.rest(index)

    def _fill(self, step: Step) -> None:
        """Disjoint prompts until the share is sent, and then until no event claims a device copy of the
        target; within a bound."""
        index = step["worker"]
        self.rest(index)
        for number in range(step["most"]):
            if number >= step["due"] and not self._claimed(index, step["until"]):
                return
            prompt = [[f"{step['stream']}.{number}", 0, step["length"]]]
            call = {"id": f"{step['id']}.{number}", "worker": index, "prompt": prompt}
            self.send(index, [{**call, "outputs": step["outputs"]}])

    def _claimed(self, index: int, target: str) -> bool:
        prompt = self.prompts.get(target)
        if prompt is None or index in self.held:
            return False
        return any(self.books[index].on("device", block) for block in self.replies[target]["pages"])

    def send(self, index: int, calls: list[Step]) -> None:
        """Requests together on one worker, and what came of them."""
        made = [{**call, "tokens": self.tokens(call["prompt"]), "rid": call["id"]} for call in calls]
        self._make_room(index, sum(len(call["tokens"]) + call["outputs"] for call in made))
        book, before = self.books[index], [self._before(index, call) for call in made]
        for call, known in zip(made, before, strict=True):
            book.name(call["id"], call.get("namespace") or "", known["pages"])
        book.told, book.left, book.loads, book.newest = set(), set(), Counter(), []
        worker = self.workers[index]
        alone = len(made) == 1 and made[0].get("abort_after_s") is None
        replies = [worker.generate(made[0])] if alone else worker.together(made)
        self.rested[index] = False
        for call, seen in zip(made, replies, strict=True):
            _say(call, seen)
        self.pull(index)
        for call, known, seen in zip(made, before, replies, strict=True):
            self._received(index, call, {**seen, **known})
        if len(made) == 1 and not replies[0].get("aborted", True):
            book.newest = before[0]["pages"]
        ids = [call["id"] for call in made]
        good = [self.replies[name] for name in ids if self.replies[name].get("prompt") is not None]
        group = {"told": book.told, "left": book.left, "loads": book.loads}
        self.groups.append({"ids": ids, "replies": good, **group})

    def _before(self, index: int, call: Step) -> Reply:
        """Its pages, those that a match may use, and what events claim of them: how many leading ones are
        held, on device, and behind the held ones in storage; which are on host only."""
        pages = page_hashes(call["tokens"], self.setup["page"], call.get("seed", ""))
        if not self.events[index]:
            return {"pages": pages, "claimed": None}
        last = len(call["tokens"]) - 1
        if call.get("logprob_start") is not None:
            last = min(last, max(0, call["logprob_start"]))
        usable, book = pages[: last // self.setup["page"]], self.books[index]
        held = leading(book.held(block) for block in usable)
        stored = leading(block in book.written for block in usable[held:])
        host = {b for b in usable if book.on("host", b) and not book.on("device", b) and not book.doubtful(b)}
        claimed = (held, leading(book.on("device", block) for block in usable), stored)
        return {"pages": pages, "usable": usable, "claimed": claimed, "host_only": host}

    def _received(self, index: int, call: Step, seen: Reply) -> None:
        book = self.books[index]
        self.replies[call["id"]], self.expected[call["id"]] = seen, call
        self.prompts[call["id"]] = call["tokens"]
        if "failed" in seen:
            self.failed.append((seen.get("kind", ""), f"{call['id']}: {seen['failed']}"))
            return
        everything = [*call["tokens"], *seen["outputs"]]
        seen["blocks"] = page_hashes(everything, self.setup["page"], call.get("seed", ""))
        book.name(call["id"], call.get("namespace") or "", seen["blocks"])
        self.bare[index] += call["outputs"] == 0
        if self.setup["silent_revival"] and seen["prompt"] is not None:
            served = seen["blocks"][seen["cached"] // self.setup["page"] :]
            book.revived.update(b for b in served if book.on("host", b) and not book.on("device", b))
        if not seen["aborted"]:
            book.completed(seen["pages"])

    def _make_room(self, index: int, tokens: int) -> None:
        """Held copies pin device pages: let them land before requests would wait for ever."""
        if index in self.held:
            self.held[index] += tokens
            if self.held[index] > self.setup["device_pages"] * self.setup["page"] // 3:
                self.release(index)

    # control ---------------------------------------------------------------------------------------
    def _control(self, step: Step) -> None:
        index, what = step["worker"], step["do"]
        if what == "hold":
            self.workers[index].ask("POST", "/sim/control", {"copies": "hold"})
            self.held[index] = 0
            return
        self.release(index)
        if what != "release":
            self.rest(index)
        if what in ("flush", "restart"):
            self.empty(index)
        elif what not in ("idle", "release") and self.setup["empty"]:
            self.workers[index].ask(step["method"], step["path"], step["body"])

    def tokens(self, pieces: list[Any]) -> list[int]:
        """Token ids: those of a stream follow from its name, "@op1" are the outputs that op1 was given."""
        found: list[int] = []
        for stream, start, stop in pieces:
            if stream.startswith("@"):
                found += self.replies[stream[1:]].get("outputs", [])[start:stop]
            else:
                found += [token(self.own + stream, index) for index in range(start, stop)]
        return found


def _say(call: Step, seen: Reply) -> None:
    print(f"        {call['id']}: prompt {len(call['tokens'])}, {told(seen)}")
    if "expected" in call:
        print(f"        expected {call['expected']}; when it failed: {call['seen']}")


def token(stream: str, index: int) -> int:
    """Token `index` of an endless stream: an id from 1 to 1000."""
    return 1 + int.from_bytes(hashlib.sha256(f"{stream}/{index}".encode()).digest()[:4], "big") % 1000


def leading(flags: Any) -> int:
    """How many are true before the first that is not."""
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count
