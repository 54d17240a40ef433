"""Rules of the step model: what an engine version does, one named switch each, with its source.

Sections are those of the reference `engine-semantics` (0.5.17) and `engine-0.5.23`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tierfuzz.errors import UsageError


@dataclass(frozen=True)
class Rules:
    """Defaults are a healthy engine; a profile switches on what a version really does.

    The first group are defects that users see; the second group are the plain rules of 6.1, kept as
    switches so that a test can break them one at a time and see conformance notice.
    """

    # defects -------------------------------------------------------------------------------------
    silent_revival: bool = False  # B7: recomputed KV over a host-only node, no device store event
    namespace_aliasing: bool = False  # B6c: namespaces share block hashes
    two_hits_a_request: bool = False  # B8: prompt insert and finish insert both count
    refresh_remainder: bool = False  # B13: a partial match makes the unmatched rest younger
    load_back_evicts_full: bool = False  # E1: load-back evicts its length, not the shortfall
    exact_fit_evicts: bool = False  # E2: prefill asks for one page more than it needs
    decode_reserves_always: bool = False  # E3: every decode step reserves a page
    host_evicts_full: bool = False  # E4: host eviction asks for the node's length, not the shortfall
    child_first_host_stores: bool = False  # E5: write_back stores children before parents
    futile_host_eviction: bool = False  # B9: host is evicted although the backup still fails
    declined_split_wrong: bool = False  # B5: a declined load-back is still reported as host
    unreported_token: bool = False  # B15: an n=0 request beside a decode stores one unreported token
    aborted_returns_token: bool = False  # B16: an aborted n=0 request returns one output
    storage_ignores_namespace: bool = False  # B6: storage keys are shared by namespaces
    storage_lands_at_root: bool = False  # B6b, B17: a prefetch at the root lands in no namespace
    storage_by_span: bool = True  # off: a refilled page counts as storage wherever it lies (5.8)
    storage_evicts_full: bool = False  # B18: a prefetch evicts host by its length
    mirrors_reclaimable: bool = True  # off: T10, a host below the device fills up with second copies for good
    # plain rules -----------------------------------------------------------------------------------
    match_keeps_last: int = 1  # 5.1: tokens at the end of a prompt that are always computed
    logprob_caps: bool = True  # 5.1
    load_back_threshold: int = 10  # 5.6
    load_back_protects: bool = True  # 5.6: host nodes about to be loaded are not evicted from host
    load_back_keeps_host: bool = True  # 4
    selective_threshold: int = 2  # 4
    insert_refreshes: bool = True  # 5.5
    split_keeps_hits: bool = True  # 5.1
    parent_joins_device: bool = True  # 5.5
    parent_joins_host: bool = True  # 5.7
    reclaims_on_device_copies: bool = False  # 5.7: never in 0.5.17
    staged_host_protected: bool = True  # 4, write_back
    staged_at_end: bool = True  # 4, write_back: host stores at the end of the eviction call
    removal_first: bool = True  # 4, write_back: device removal before host store
    drop_commits_first: bool = True  # 4, write_back
    drop_when_full: bool = True  # 4, write_back
    retry_failed_backup: bool = True  # 4
    backup_needs_parent: bool = True  # 4
    child_waits_parent_ack: bool = False  # 6.1: children may follow at once
    chunk_counts_hits: bool = False  # 5.2
    chunk_extra_page: bool = True  # 5.5: the extra page is asked for with every chunk
    loaded_take_budget: bool = False  # 6.1
    chunk_inserts_first: bool = True  # 5.2
    single_slot_extra: int = 0  # 5.5: extra slots at S=1
    second_match: bool = True  # 5.2
    second_match_capped: bool = False  # 5.2
    lone_insert_for_one: bool = False  # 5.2: n=1 would insert the prompt as well
    finish_drops_last: bool = False  # 5.2: finish would store P+n-1
    acks_at_end: bool = False  # 4: copies would land only after the request
    counts_discarded: bool = True  # 3.6
    storage_events: bool = False  # T24: a store goes out once a node is wholly new in storage; no engine yet
    chunks_publish: bool = True  # 3.6
    # 0.5.23 (engine-0.5.23 section 1) -------------------------------------------------------------
    unified: bool = False  # the unified tree: ancestors are backed up, copies are queued
    last_output_not_decoded: bool = False  # no decode step for the last output
    coalesce: str = ""  # "", "rust" or "python": how neighbouring events are merged
    wire: str = "array"  # "array" or "map"

    def but(self, **changes: bool | int | str) -> Rules:
        """A copy with some rules changed; UsageError for a name that is no rule."""
        known = {field.name for field in fields(self)}
        if wrong := sorted(set(changes) - known):
            raise UsageError(f"unknown rule {', '.join(wrong)}; known rules: {', '.join(sorted(known))}")
        return replace(self, **changes)  # type: ignore[arg-type]


DEFAULT = Rules()

SGLANG_0_5_17 = Rules(
    silent_revival=True,
    namespace_aliasing=True,
    two_hits_a_request=True,
    refresh_remainder=True,
    load_back_evicts_full=True,
    exact_fit_evicts=True,
    decode_reserves_always=True,
    host_evicts_full=True,
    child_first_host_stores=True,
    futile_host_eviction=True,
    declined_split_wrong=True,
    unreported_token=True,
    aborted_returns_token=True,
    storage_ignores_namespace=True,
    storage_lands_at_root=True,
    storage_evicts_full=True,
    storage_by_span=False,
    mirrors_reclaimable=False,
)

SGLANG_0_5_23 = Rules(
    mirrors_reclaimable=False,
    refresh_remainder=True,
    exact_fit_evicts=True,
    decode_reserves_always=True,
    futile_host_eviction=True,
    aborted_returns_token=True,
    namespace_aliasing=True,
    storage_evicts_full=True,
    child_first_host_stores=True,
    staged_at_end=False,
    removal_first=False,
    chunk_counts_hits=True,
    second_match=False,
    unified=True,
    last_output_not_decoded=True,
    coalesce="rust",
    wire="map",
)

PROFILES: dict[str, Rules] = {
    "default": DEFAULT,
    "sglang-0.5.17": SGLANG_0_5_17,
    "sglang-0.5.23": SGLANG_0_5_23,
}


def rules_for(profile: str) -> Rules:
    """The rules of a named profile; UsageError lists the names for an unknown one."""
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; expected one of: {', '.join(sorted(PROFILES))}")
    return PROFILES[profile]
