"""Ids of new scripts: provisional and of their own in the package's catalogue, counted in a private one."""

from __future__ import annotations

from repros.authoring.new.ids import FIRST_PROVISIONAL, LAST_PROVISIONAL, is_provisional, new_id, next_id


def test_the_name_decides_a_provisional_id() -> None:
    first, again, other = new_id("a_slug", ()), new_id("a_slug", {"RPR-0052"}), new_id("another_slug", ())
    assert first == again != other
    assert FIRST_PROVISIONAL <= int(first.removeprefix("RPR-")) <= LAST_PROVISIONAL
    assert is_provisional(first)


def test_a_taken_one_is_left_out_and_the_last_is_followed_by_the_first() -> None:
    all_but_one = {f"RPR-{number}" for number in range(FIRST_PROVISIONAL, LAST_PROVISIONAL + 1)} - {"RPR-6001"}
    assert new_id("a_slug", all_but_one) == "RPR-6001"


def test_a_final_id_follows_the_highest_that_is_final_of_its_prefix() -> None:
    assert next_id({"RPR-0003", "RPR-0052", "RPR-7123", "ACME-0099"}) == "RPR-0053"
    assert next_id(()) == "RPR-0001"
    assert new_id("a_slug", {"RPR-0052", "ACME-0003", "ACME-5001"}, "ACME") == "ACME-5002"


def test_only_the_package_s_own_are_provisional() -> None:
    assert [id_ for id_ in ("RPR-4999", "RPR-5000", "ACME-5000") if is_provisional(id_)] == ["RPR-5000"]
