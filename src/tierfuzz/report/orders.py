"""Event orders for people: a minimal stream, and the table of a campaign over orders."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tierfuzz.orders.story import Order, Row, Story

KINDS = {
    "forgets": "answers less than is held",
    "phantom": "answers more than is held",
    "wrong-tier": "answers the wrong tier",
    "crash": "raises an error",
}


def told(story: Story) -> str:
    """The whole story, some lines."""
    return "\n".join(_lines(story))


def _lines(story: Story) -> Iterator[str]:
    minimal = "1-minimal" if story.minimal else "not shown to be minimal"
    yield (
        f"{story.consumer} {KINDS[story.kind]} after {story.events} events "
        f"(from {story.events_before} in {story.runs} runs, {minimal})"
    )
    if story.detail:
        yield f"  {story.detail}"
    whom = f"worker {story.worker}" + (f" rank {story.rank}" if story.rank else "")
    asked = " ".join(story.asked) or "a page that stands in the middle of a chain, as if it were the first"
    yield f"asked about {whom}, pages {asked}" if story.kind != "crash" else f"at a message of {whom}"
    width = max(len(row.message) for row in story.rows)
    for number, row in enumerate(story.rows, 1):
        yield f"  {number:3} {row.message:{width}}  {_answers(row)}"
    yield "order:"
    yield from (f"  {_order(order)}" for order in story.orders)
    yield _blame(story.orders[0])


def _answers(row: Row) -> str:
    if row.answered is None:
        return ""
    readings = {_figures(right): name for name, right in row.right.items()}
    if len(readings) == 1:
        right = next(iter(readings))
    else:
        right = " or ".join(f"{figures} ({name})" for figures, name in readings.items())
    answered = _figures(row.answered)
    return (
        f"answered {answered}" if answered in readings else f"answered {answered}, right {right}   <- wrong"
    )


def _figures(answer: Mapping[str, int]) -> str:
    return ", ".join(f"{tier} {pages}" for tier, pages in answer.items())


def _order(order: Order) -> str:
    name = f"{order.policy} of {order.profile}"
    if not order.why:
        return f"legal   {name}"
    return f"illegal {name}: message {(order.message or 0) + 1}: {order.why.partition(': ')[2]}"


def _blame(own: Order) -> str:
    if not own.why:
        return f"An engine may send this order ({own.policy} of {own.profile}): the consumer is wrong."
    known = f"known family {own.family}" if own.family else "no engine is known for it"
    return f"No healthy engine sends this order ({known}): the engine is to blame first, then the consumer."


def row(
    policy: str,
    family: str,
    streams: int,
    events: int,
    comparisons: int,
    follows: Collection[str],
    wrong: Mapping[str, int],
) -> str:
    """One line of a campaign: the streams of a policy, legal or of a family."""
    order = f"illegal ({family})" if family else "legal"
    result = ", ".join(f"{count} {kind}" for kind, count in wrong.items()) or "none wrong"
    reading = f"; reads {' or '.join(sorted(follows))}" if follows else ""
    figures = f"{streams} streams, {events} events, {comparisons} answers"
    return f"{policy:24} {order:24} {figures}: {result}{reading}"
