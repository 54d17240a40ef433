"""The prefix tree books what events say, whatever order they come in."""

from __future__ import annotations

import pytest

from tierfuzz.consumers.tree import PrefixTree, leading, served
from tierfuzz.events import BlockStored, Tier

A, B = (0, 0), (1, 0)
SIZE = 4
PAGES = {name: (name,) * SIZE for name in range(1, 10)}
MEDIA = {"g": "GPU", "h": "CPU_PINNED"}


def store(
    tree: PrefixTree,
    first: int,
    last: int,
    medium: str = "g",
    source: tuple[int, int] = A,
    parent: int | None = None,
    salt: str | None = None,
    names: int = 100,
) -> None:
    """Pages first..last of the prompt 1, 2, 3, ... under the names 101, 102, ..."""
    hashes = tuple(names + page for page in range(first, last + 1))
    before = parent if parent is not None else (names + first - 1 if first > 1 else None)
    tokens = tuple(token for page in range(first, last + 1) for token in PAGES[page])
    tree.store(source, BlockStored(hashes, before, tokens, SIZE, MEDIA[medium], cache_salt=salt))


def names(*pages: int) -> tuple[int, ...]:
    return tuple(100 + page for page in pages)


def claimed(tree: PrefixTree, *pages: int, source: tuple[int, int] = A, salt: str = "") -> dict[Tier, int]:
    """Leading pages of a prompt by tier."""
    tokens = [token for page in pages for token in PAGES[page]]
    return leading(list(tree.path(tokens, SIZE, salt))).get(source, {})


def test_a_removal_clears_its_own_tier_only() -> None:
    tree = PrefixTree()
    store(tree, 1, 3)
    store(tree, 1, 3, "h")
    tree.remove(A, names(3, 2, 1), Tier.DEVICE)
    assert claimed(tree, 1, 2, 3) == {Tier.HOST: 3}


def test_a_removal_of_everything_takes_the_source_off_the_page() -> None:
    tree = PrefixTree()
    store(tree, 1, 3)
    store(tree, 1, 3, "h")
    tree.remove(A, names(3, 2), None)
    assert claimed(tree, 1, 2, 3) == {Tier.DEVICE: 1, Tier.HOST: 1}


def test_copies_are_counted() -> None:
    tree = PrefixTree()
    store(tree, 1, 2)
    store(tree, 1, 2)
    tree.remove(A, names(2, 1), Tier.DEVICE)
    assert claimed(tree, 1, 2) == {Tier.DEVICE: 2}
    tree.remove(A, names(2, 1), Tier.DEVICE)
    assert claimed(tree, 1, 2) == {}


def test_one_page_under_two_names_is_held_until_both_are_removed() -> None:
    tree = PrefixTree()
    store(tree, 1, 2)
    store(tree, 1, 2, names=500)
    tree.remove(A, names(2, 1), Tier.DEVICE)
    assert claimed(tree, 1, 2) == {Tier.DEVICE: 2}


@pytest.mark.parametrize(
    "order", [((3, 4), (1, 2)), ((4, 4), (3, 3), (2, 2), (1, 1)), ((3, 4), (2, 2), (1, 1))]
)
def test_children_may_come_before_their_parents(order: tuple[tuple[int, int], ...]) -> None:
    tree = PrefixTree()
    for first, last in order:
        assert claimed(tree, 1, 2, 3, 4) == {}
        store(tree, first, last, "h")
    assert claimed(tree, 1, 2, 3, 4) == {Tier.HOST: 4}


def test_a_child_without_a_place_is_no_page_of_a_prompt_that_begins_with_it() -> None:
    tree = PrefixTree()
    store(tree, 3, 4)
    assert claimed(tree, 3, 4) == {}


def test_a_place_that_another_worker_knows_already_is_shared() -> None:
    tree = PrefixTree()
    store(tree, 1, 4, source=B, names=900)
    store(tree, 3, 4)
    store(tree, 1, 2)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 4}
    assert claimed(tree, 1, 2, 3, 4, source=B) == {Tier.DEVICE: 4}
    tree.clear(B)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 4}
    assert claimed(tree, 1, 2, 3, 4, source=B) == {}


def test_a_hole_heals() -> None:
    tree = PrefixTree()
    store(tree, 1, 4)
    tree.remove(A, names(2), Tier.DEVICE)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 1}
    store(tree, 2, 2)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 4}


def test_a_child_of_a_removed_parent_counts_when_the_parent_is_back() -> None:
    tree = PrefixTree()
    store(tree, 1, 3)
    tree.remove(A, names(3), Tier.DEVICE)
    store(tree, 4, 4)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 2}
    store(tree, 3, 3)
    assert claimed(tree, 1, 2, 3, 4) == {Tier.DEVICE: 4}


def test_salts_are_trees_of_their_own() -> None:
    tree = PrefixTree()
    store(tree, 1, 2, salt="tenant")
    assert claimed(tree, 1, 2) == {}
    assert claimed(tree, 1, 2, salt="tenant") == {Tier.DEVICE: 2}


def test_stores_without_tokens_are_booked_where_the_name_is_known() -> None:
    tree = PrefixTree()
    store(tree, 1, 2)
    tree.store(A, BlockStored(names(1, 2, 3), None, (), SIZE, "CPU_PINNED"))
    assert claimed(tree, 1, 2, 3) == {Tier.DEVICE: 2, Tier.HOST: 2}


@pytest.mark.parametrize("medium", ["g", "h"])
def test_a_block_that_is_its_own_parent_or_ancestor_is_refused(medium: str) -> None:
    tree = PrefixTree()
    store(tree, 1, 1, medium, parent=101)
    store(tree, 2, 2, medium, parent=103)
    store(tree, 3, 3, medium, parent=102)
    assert claimed(tree, 1) == {}
    assert claimed(tree, 2, 3) == {}
    store(tree, 1, 3, medium)
    assert claimed(tree, 1)[Tier.DEVICE if medium == "g" else Tier.HOST] == 1


def test_an_unmatched_removal_changes_nothing() -> None:
    tree = PrefixTree()
    store(tree, 1, 2)
    tree.remove(A, names(1, 2, 7), Tier.HOST)
    assert claimed(tree, 1, 2) == {Tier.DEVICE: 2}


def test_nothing_stays_behind() -> None:
    tree = PrefixTree()
    store(tree, 3, 4)
    store(tree, 1, 2, "h")
    store(tree, 1, 4, source=B)
    for source in (A, B):
        tree.clear(source)
        assert tree.size(source) == 0
    assert not any(tree.knows(source, name) for source in (A, B) for name in names(1, 2, 3, 4))
    assert list(tree.path(PAGES[1], SIZE)) == []


def test_pages_are_served_from_any_tier_counted_where_they_are_nearest() -> None:
    tree = PrefixTree()
    store(tree, 1, 2)
    store(tree, 2, 4, "h")
    tokens = [token for page in (1, 2, 3, 4, 5) for token in PAGES[page]]
    assert served(list(tree.path(tokens, SIZE))) == {A: {Tier.DEVICE: 2, Tier.HOST: 2}}
