"""Event orders for people: a minimal stream, and the table of a campaign over orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tierfuzz.orderfuzz import OrderRun
from tierfuzz.orders.causality import FAMILIES, RULES, discipline_of
from tierfuzz.orders.story import Order, Row, Story

KINDS = {
    "forgets": "answers less than is held",
    "phantom": "answers more than is held",
    "wrong-tier": "answers the wrong tier",
    "deaf": "does not hear a worker any more",
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
    unasked = story.kind in ("crash", "deaf")
    yield f"at a message of {whom}" if unasked else f"asked about {whom}, pages {asked}"
    width = max(len(row.message) for row in story.rows)
    for number, row in enumerate(story.rows, 1):
        yield f"  {number:3} {row.message:{width}}  {_answers(row)}"
    yield "order:"
    yield from (f"  {line}" for line in _orders(story.orders))
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


def _orders(orders: list[Order]) -> Iterator[str]:
    """A line for each different answer."""
    alike: dict[tuple[str, int], list[str]] = {}
    for order in orders:
        alike.setdefault((order.why, order.message or 0), []).append(f"{order.policy} of {order.profile}")
    for (why, message), names in alike.items():
        yield (
            f"illegal in {', '.join(names)}: message {message + 1}: {why}"
            if why
            else f"legal in {', '.join(names)}"
        )


def _blame(own: Order) -> str:
    if not own.why:
        return f"An engine may send this order ({own.policy} of {own.profile}): the consumer is wrong."
    known = f"known family {own.family}" if own.family else "no engine is known for it"
    return f"No healthy engine sends this order ({known}): the engine is to blame first, then the consumer."


def row(run: OrderRun) -> str:
    """One line of a campaign: the streams of a policy, legal or of a family."""
    order = f"illegal ({run.family})" if run.family else "legal"
    result = ", ".join(f"{count} {kind}" for kind, count in sorted(run.wrong.items())) or "none wrong"
    reading = f"; reads {' or '.join(sorted(run.follows))}" if run.follows else ""
    figures = f"{run.streams} streams, {run.events} events, {run.comparisons} answers"
    return f"{run.policy:24} {order:24} {figures}: {result}{reading}"


def rule_table() -> str:
    """The rules of docs/orders.md; `where`: under which policies and engines."""
    disciplines = {
        "write_through*": discipline_of("write_through"),
        "write_back of 0.5.17": discipline_of("write_back", "sglang-0.5.17"),
        "write_back of 0.5.23": discipline_of("write_back", "sglang-0.5.23"),
    }
    rows = []
    for rule in RULES:
        where = [name for name, by in disciplines.items() if rule in by.rules[rule.kind, rule.tier]]
        shown = "everywhere" if len(where) == len(disciplines) else ", ".join(where)
        rows.append(f"| `{rule.slug}` | {rule.kind} | {rule.tier} | {rule.says} | {shown} |")
    return "\n".join(rows)


def family_table() -> str:
    """The families of docs/orders.md."""
    return "\n".join(f"| `{family}` | {says} |" for family, says in FAMILIES.items())
