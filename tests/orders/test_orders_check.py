"""A consumer on trial: what counts as wrong, which reading it follows, and what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from short import BLOCKS, SIZE, short
from standins import StandIn

from tierfuzz.events import Tier
from tierfuzz.orders.check import check, follow
from tierfuzz.orders.files import load_stream
from tierfuzz.orders.pages import Pages
from tierfuzz.orders.stream import Sent, Stream

THROUGH = "Sg1-4 Sh1-4 Rg4-1"
BACK = "Sg1-4 Rg4-1 Sh1-4 Sg1-4 Rg4-1"
TWICE = "Sg1-2 Sg1-2 Rg2-1"  # sets: gone; copies: still there
FAULTS = [
    ("tier-blind", THROUGH, "forgets", 2),
    ("tier-blind", BACK, "forgets", 4),
    ("orphan-dropped", "Sg1-2 Rg2-1 Sh2 Sh1", "forgets", 3),
    ("clear-ignored", "Sg1 C", "phantom", 1),
    ("clear-ignored", "Sg1 X", "phantom", 1),
    ("host-as-device", "Sg1 Rg1 Sh1", "wrong-tier", 2),
    ("crash", "Sg1-2 Sh1 Sh2", "crash", 2),
]


@pytest.mark.parametrize("text", [THROUGH, BACK, "Sg1-2 C Sg1 X Sg1-2", "Sg2 Sg1 Rg1"])
def test_a_right_consumer_is_not_accused(text: str) -> None:
    trial = check(short(text), StandIn)
    assert trial.findings == []
    assert trial.comparisons > 0
    assert trial.follows == {"counts", "sets"}


@pytest.mark.parametrize(("fault", "text", "kind", "entry"), FAULTS)
def test_a_wrong_consumer_is_found_at_the_message(fault: str, text: str, kind: str, entry: int) -> None:
    (finding,) = check(short(text), lambda: StandIn(fault)).findings
    assert (finding.kind, finding.entry, finding.source) == (kind, entry, (0, 0))


def test_a_finding_says_what_was_answered_and_what_was_right() -> None:
    (finding,) = check(short(THROUGH), lambda: StandIn("tier-blind")).findings
    assert finding.probe.blocks == BLOCKS[:4]
    assert finding.answered == {Tier.DEVICE: 0, Tier.HOST: 0}
    assert finding.right["counts"] == finding.right["sets"] == {Tier.DEVICE: 0, Tier.HOST: 4}


def test_an_error_of_a_consumer_is_told() -> None:
    (finding,) = check(short("Sg1-2 Sh1 Sh2"), lambda: StandIn("crash")).findings
    assert finding.detail.startswith("KeyError: ")


@pytest.mark.parametrize(("fault", "reading"), [("", "sets"), ("counts", "counts")])
def test_both_readings_of_a_double_store_are_right_and_told_apart(fault: str, reading: str) -> None:
    trial = check(short(TWICE), lambda: StandIn(fault))
    assert trial.findings == []
    assert trial.follows == {reading}


@pytest.mark.parametrize(
    ("fault", "asked", "kind"), [("", "counts", "forgets"), ("counts", "sets", "phantom")]
)
def test_only_one_reading_is_right_when_asked_for(fault: str, asked: str, kind: str) -> None:
    (finding,) = check(short(TWICE), lambda: StandIn(fault), asked).findings
    assert finding.kind == kind
    assert set(finding.right) == {asked}


def test_a_page_of_the_middle_is_asked_for_as_if_it_were_the_first() -> None:
    (finding,) = check(short("Sg1-4 Rg4-1 Sh3"), lambda: StandIn("orphan-at-root")).findings
    assert finding.kind == "phantom"
    assert finding.probe.blocks == ()
    assert finding.probe.tokens == (3,) * SIZE


def test_a_consumer_that_missed_messages_can_ask_for_them() -> None:
    assert check(short(THROUGH), lambda: StandIn("late")).findings == []
    assert check(short(THROUGH), lambda: StandIn("deaf")).findings[0].kind == "forgets"


@pytest.mark.parametrize("other", [(0, 1), (1, 0)])
def test_workers_and_ranks_are_asked_about_apart(other: tuple[int, int]) -> None:
    (mine,) = short("Sg1-2").entries
    (theirs,) = short("Rg2-1").entries
    assert isinstance(theirs, Sent)
    stream = Stream("write_back", (mine, Sent(*other, theirs.events)), SIZE)
    assert check(stream, StandIn).findings == []
    assert check(stream, lambda: StandIn("one-cache")).findings[0].source == (0, 0)


def test_answers_are_followed_message_by_message() -> None:
    stream = short(THROUGH)
    (finding,) = check(stream, lambda: StandIn("tier-blind")).findings
    looks = list(follow(stream, lambda: StandIn("tier-blind"), finding))
    assert [look.answered[Tier.HOST] for look in looks] == [0, 4, 0]
    assert [look.right["sets"][Tier.HOST] for look in looks] == [0, 4, 4]


def test_prompts_are_known_by_their_content() -> None:
    pages = Pages(short("Sg1-4"))
    assert pages.chain(BLOCKS[3]) == BLOCKS[:4]
    assert pages.walk((1,) * SIZE + (2,) * SIZE + (9,) * SIZE) == BLOCKS[:2]
    assert pages.below([BLOCKS[2]]) == {BLOCKS[2], BLOCKS[3]}
    assert Pages(short("Sg3")).chain(BLOCKS[2]) == ()


@pytest.mark.parametrize(
    "name",
    ["sglang-0.5.17-write_back-p64", "sglang-0.5.17-write_through-p64", "sglang-0.5.23-sel-p16-h528-rust"],
)
def test_recordings_are_delivered_and_silent_on_a_right_consumer(recordings: Path, name: str) -> None:
    stream = load_stream(recordings / f"{name}.jsonl.xz")
    trial = check(stream, StandIn)
    assert trial.findings == []
    assert trial.comparisons > 5000
    assert check(stream, lambda: StandIn("tier-blind")).findings != []
